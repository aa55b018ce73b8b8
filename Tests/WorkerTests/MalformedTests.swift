import Glibc
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Files that fuzzers found against other decoders, all through one worker.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Corpus.isThere, "\(Corpus.missing)")) struct MalformedTests {
    private static let files: [String: [UInt8]] = {
        var files: [String: [UInt8]] = [:]
        for folder in ["gif", "png", "jpeg", "webp", "tiff"] {
            for file in Corpus.files("malformed/\(folder)") {
                // Some are empty, and one that can't be read is missed by the count.
                guard let bytes = try? Corpus.bytes(file) else { continue }
                files["/\(folder)/\(file.lastComponent?.string ?? "")"] = bytes
            }
        }
        return files
    }()

    @Test func eachMalformedFileEndsDoneOrInAClassAndASecondRunMakesNoRequest() async throws {
        let files = Self.files
        #expect(files.count == 1_251)
        let peak = Mutex(0)
        try await withWorker({ files[$0.path].map { .ok($0) } ?? .status(404) }) { w in
            let urls = files.keys.sorted().map { w.url($0) }
            let arguments = ["enqueue", "-f", "-", "--variant", "small=64x64,webp", "--variant", "kept=64x64"]
            let job = try await w.run(arguments, input: urls.joined(separator: "\n")).line
            // Once each: what is cut short is asked for again at the pace that a host is owed, which takes minutes.
            let child = try w.start("--transforms", "2", "--max-tries", "1")
            try await w.eventually("all have ended", within: .seconds(240)) {
                for helper in ProcessTable.children(of: child.pid) {
                    let memory = ProcessTable.peakMemory(of: helper) ?? 0
                    peak.withLock { $0 = max($0, memory) }
                }
                return try await w.value("SELECT finished_at IS NOT NULL FROM jobs WHERE id = \(job)") == "1"
            }
            #expect(child.exit == nil)
            #expect(peak.withLock { $0 } < 1_024)
            #expect(try await w.value("SELECT total FROM jobs WHERE id = \(job)") == "\(urls.count)")
            let classes = try await w.rows("SELECT class, count(*) FROM failures GROUP BY 1")
            print("malformed: \(classes), \(try await w.counts(job)), at most \(peak.withLock { $0 }) MiB")
            let allowed: Set = ["bad-image", "truncated", "too-many-pixels", "not-an-image"]
            #expect(Set(classes.map { String($0.prefix { $0 != "|" }) }).isSubset(of: allowed))
            #expect(
                try await w.value("SELECT count(*) FROM items WHERE state NOT IN ('done', 'failed')") == "0")
            try await aSecondRunCostsNothing(urls, w)
        }
    }

    /// What was made is there, and what failed is known.
    private func aSecondRunCostsNothing(_ urls: [String], _ w: TestWorker) async throws {
        let before = w.origin.requests.count
        let failed = Int(try await w.value("SELECT failed FROM jobs")) ?? 0
        let job = try await w.run(
            ["enqueue", "-f", "-", "--variant", "small=64x64,webp", "--variant", "kept=64x64"],
            input: urls.joined(separator: "\n")
        ).line
        try await w.untilEnded(job, within: .seconds(30))
        #expect(w.origin.requests.count == before)
        let counts = try await w.counts(job).split(separator: "|").compactMap { Int($0) }
        #expect(counts.first == 0 && counts.dropFirst().first == urls.count - failed, "\(counts)")
    }
}

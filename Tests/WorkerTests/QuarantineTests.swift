import Glibc
import TestSupport
import Testing

/// Files in a cache beside its blobs, and how long they are kept.
@Suite("Quarantine and other leftovers", .timeLimit(.minutes(15)))
struct QuarantineTests {
    @Test func `Quarantined files are reported, are kept for their time, and can be removed`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            try w.flipByte(of: try await w.path(w.url("/1.png")))
            let found = try await w.run("cache", "verify", "--repair", expecting: 74)
            #expect(found.output.contains("1 file is in quarantine"), "\(found.output)")
            try await w.run("cache", "gc")
            try await w.run("cache", "gc", "--quarantine-age", "never")
            try await w.run("cache", "clear", "--yes")
            #expect(fileNames(in: w.cache + "/quarantine").count == 1)
            #expect(try await w.run("cache", "stats").output.contains("1 file in quarantine"))
            let cleared = try await w.run("cache", "clear", "--quarantine", "--yes")
            #expect(cleared.output.contains("1 file removed from quarantine"))
            #expect(fileNames(in: w.cache + "/quarantine") == [])
            // By its age, as every run does it.
            try w.write([1, 2, 3], to: w.cache + "/quarantine/bytes")
            try await w.drain("--quarantine-age", "0")
            #expect(fileNames(in: w.cache + "/quarantine") == [])
        }
    }

    @Test func `A stopped verification says so, and resumes where it stopped`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<30).map { w.url("/\($0).png") })
            try await w.drain("--quiet")
            let bytes = try #require(Int(try await w.value("SELECT sum(size) FROM blobs")))
            for (signal, code) in [(SIGINT, Int32(130)), (SIGTERM, 143)] {
                let files = ChildProcess.Files(
                    output: w.place("out-\(signal)"), errors: w.place("err-\(signal)"))
                let child = try RunningProgram(
                    TestWorker.binary,
                    ["cache", "verify", "--db", w.database, "--cache", w.cache, "--rate", "\(max(1, bytes / 300))B"],
                    files: files, environment: [:])
                try await w.eventually("it is ready for signals") { child.handles(signal) }
                // One that comes while its handler is being put in place is lost.
                for _ in 0..<3 where child.exit == nil {
                    child.send(signal)
                    _ = try? await w.eventually("it has ended") { child.exit != nil }
                }
                #expect(try await child.wait() == .code(code))
                #expect(try w.text(of: files.errors).contains("worker cache verify --resume"))
                let good = Int(try w.text(of: files.output).prefix { $0.isNumber }) ?? -1
                #expect((0..<30).contains(good))
                let rest = try await w.run("cache", "verify", "--resume")
                #expect(rest.output.hasPrefix("\(30 - good) blobs are good"), "\(good), then \(rest.output)")
            }
        }
    }

    @Test func `The unnamed marker of a killed start stays while it is young`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let draft = w.cache + "/CACHE_VERSION.7.8"
            try w.write(Array("prefetch".utf8), to: draft)
            try await w.run("cache", "gc")
            #expect(access(draft, F_OK) == 0)
            unlink(draft)
        }
    }

    @Test func `An empty sample and an empty pin are refused`() async throws {
        try await withWorker { w in
            try await w.run("init")
            for percent in ["0", "-1", "101", "nan"] {
                try await w.run("cache", "verify", "--sample=\(percent)", expecting: 64)
            }
            try await w.run("cache", "verify", "--sample", "0.5")
            try await w.run("cache", "pin", "", expecting: 64)
            try await w.run("cache", "pin", w.url("/1.png"), " ", expecting: 64)
            #expect(try await w.run("cache", "pin").output == "")
        }
    }
}

extension RunningProgram {
    /// Whether a signal doesn't simply end it, by the masks that proc(5) shows.
    fileprivate func handles(_ signal: Int32) -> Bool {
        let status = String(decoding: ProcessTable.contents(of: "/proc/\(pid)/status") ?? [], as: UTF8.self)
        return status.split(separator: "\n").contains { line in
            guard line.hasPrefix("SigIgn:") || line.hasPrefix("SigCgt:") else { return false }
            let mask = line.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
            return mask >> UInt64(signal - 1) & 1 == 1
        }
    }
}

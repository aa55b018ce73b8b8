import Glibc
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

/// Sources that a run has just used are read from memory.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct MemoryTierRunTests {
    /// The bytes on the disk are damaged meanwhile: a worker without a memory tier fetches them again.
    @Test(arguments: [(Int64(64 << 20), 1), (0, 2)])
    func `Another variant of a just used source is made from memory`(_ bytes: Int64, _ requests: Int) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { configuration in
            configuration.drains = false
            configuration.memoryTier.bytes = bytes
        }) { place in
            let stop = StopSignal()
            async let summary = place.run(stop)
            defer { stop.request() }
            func made(_ variants: String) async throws {
                let job = try await place.enqueue([origin.url("/a.jpg")], variants: variants)
                #expect(try await eventually { try await place.progress(job).state == .finished })
                #expect(try await place.progress(job).failed == 0)
            }
            try await made("one=8x8")
            try await made("two=4x4")
            let hash = try #require(try await place.store.cache.source(key: origin.url("/a.jpg"))).hash
            let file = place.folder.appending("cache/blobs/sha256/\(hash.prefix(2))/\(hash)").string
            try Self.write([UInt8](repeating: 0, count: 16), to: file)
            try await made("three=2x2")
            #expect(origin.requests.count == requests)
            // The memory tier had them, so the damage was not noticed.
            if requests == 1 { try Self.write(Array(Pictures.jpeg.prefix(16)), to: file) }
            stop.request()
            _ = try await summary
        }
    }

    private static func write(_ bytes: [UInt8], to file: String) throws {
        guard chmod(file, 0o600) == 0 else { throw Errno(rawValue: errno) }
        let open = try FileDescriptor.open(FilePath(file), .readWrite)
        try open.closeAfter { _ = try open.writeAll(toAbsoluteOffset: 0, bytes) }
    }
}

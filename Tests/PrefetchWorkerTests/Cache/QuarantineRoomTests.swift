import ContentCache
import Core
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// Quarantined files, and files that can't be deleted, in a cache with a limit.
@Suite("Room that is no use to anybody", .timeLimit(.minutes(15)))
struct QuarantineRoomTests {
    /// Damages blobs, so that they are put aside.
    private func damage(_ numbers: [Int], _ depot: Depot) async throws {
        for number in numbers {
            let path = depot.cache.path(of: BlobHash(of: Depot.bytes(number, count: 100)))
            let file = try FileDescriptor.open(path, .readWrite)
            _ = try file.closeAfter { try file.writeAll(toAbsoluteOffset: 0, [0, 0, 0, 0]) }
        }
        let audit = try await CacheAudit.run(store: depot.store, cache: depot.cache)
        #expect(audit.damaged.count == numbers.count)
        try await depot.store.lostFiles.forget(foundBefore: .max)
    }

    @Test func `Quarantined files count against the limit, and are deleted first`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add(Array(0..<8), to: $0) }
            try await damage([0, 1, 2], depot)
            #expect(try depot.cache.quarantined() == (3, 300))
            let enough = try await depot.collector { $0.maxBytes = 800 }.collect()
            #expect((enough.quarantined, enough.evictedBlobs) == (0, 0))
            let report = try await depot.collector {
                $0.maxBytes = 700
                $0.lowWater = 0.9
            }.collect()
            #expect((report.quarantined, report.quarantinedBytes, report.evictedBlobs) == (2, 200, 0))
            // A new file gets the space of the last one.
            try await depot.withPublisher(limit: 600) { publisher in
                let endings = try await depot.add([20], to: publisher)
                guard case .done? = endings.first else {
                    Issue.record("It ended with \(endings).")
                    return
                }
            }
            #expect(try depot.cache.quarantined().files == 0)
        }
    }

    @Test func `A folder at a blob's path is quarantined, and later deleted with its contents`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add([1, 2], to: $0) }
            let path = depot.cache.path(of: BlobHash(of: Depot.bytes(1, count: 100))).string
            #expect(unlink(path) == 0 && mkdir(path, 0o755) == 0 && mkdir(path + "/in it", 0o755) == 0)
            let report = try await depot.collector { $0.maxAge = 0 }.collect()
            #expect((report.evictedBlobs, report.stuck) == (2, 0))
            #expect(try depot.cache.quarantined().files == 1)
            let later = try await depot.collector { $0.quarantineAge = 0 }.collect()
            #expect((later.quarantined, later.trouble) == (1, nil))
            #expect(try depot.cache.quarantined().files == 0)
        }
    }
}

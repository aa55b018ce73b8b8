import ContentCache
import Core
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// What can happen to a file behind our back.
enum Damage: Int, CaseIterable {
    case flip, truncate, zero, swap, empty, grow, link, folder, fifo, remove

    func happen(to path: String, other: String, _ generator: inout SeededGenerator) throws {
        var bytes = TestSupport.ProcessTable.contents(of: path) ?? []
        switch self {
        case .flip:
            bytes[Int.random(in: bytes.indices, using: &generator)] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
        case .truncate: bytes.removeLast(Int.random(in: 1...bytes.count, using: &generator))
        case .zero:
            let start = Int.random(in: bytes.indices, using: &generator)
            for index in start..<min(bytes.count, start + 64) { bytes[index] = bytes[index] == 0 ? 1 : 0 }
        case .swap: bytes = TestSupport.ProcessTable.contents(of: other) ?? []
        case .empty: bytes = []
        case .grow: bytes.append(0)
        case .link, .folder, .fifo, .remove: break
        }
        guard unlink(path) == 0 else { throw Errno(rawValue: errno) }
        switch self {
        case .link: symlink(other, path)
        case .folder: mkdir(path, 0o755)
        case .fifo: mkfifo(path, 0o644)
        case .remove: break
        default:
            let file = try FileDescriptor.open(
                FilePath(path), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
            _ = try file.closeAfter { try file.writeAll(bytes) }
        }
    }
}

@Suite("Damaged files", .timeLimit(.minutes(15)))
struct CorruptionTests {
    /// Two hundred different damages: each is found by a read or a verification, is never returned, and is repaired by
    /// publishing it again.
    @Test func `Damaged bytes are never returned, and every damage is found`() async throws {
        try await withDepot { depot in
            let numbers = Array(0..<20)
            try await depot.withPublisher { publisher in
                _ = try await depot.add(numbers, to: publisher)
                for seed in 0..<200 {
                    try await damageOne(depot, publisher, seed: seed, numbers)
                }
            }
        }
    }

    private func damageOne(_ depot: Depot, _ publisher: Publisher, seed: Int, _ numbers: [Int]) async throws {
        var generator = SeededGenerator(seed: UInt64(seed))
        let reader = CacheReader(store: depot.store, cache: depot.cache)
        let damage = Damage.allCases[seed % Damage.allCases.count]
        let number = numbers[Int.random(in: 0..<19, using: &generator)]
        // Read before, so that what was verified in this boot is known, and damage is noticed all the same.
        let path = try #require(try await reader.find(Depot.url(number), variant: "original").path)
        let other = depot.cache.path(of: BlobHash(of: Depot.bytes(19, count: 100))).string
        try damage.happen(to: path, other: other, &generator)
        if Bool.random(using: &generator) {
            let found = try await reader.find(Depot.url(number), variant: "original")
            #expect(found.path == nil, "\(damage), seed \(seed)")
        } else {
            let audit = try await CacheAudit.run(store: depot.store, cache: depot.cache)
            #expect(audit.missing.count + audit.damaged.count == 1, "\(damage), seed \(seed): \(audit)")
        }
        #expect(try await reader.find(Depot.url(number), variant: "original").path == nil)
        _ = try await depot.add([number], to: publisher)
        let mended = try #require(try await reader.find(Depot.url(number), variant: "original").path)
        #expect(TestSupport.ProcessTable.contents(of: mended) == Depot.bytes(number, count: 100))
    }

    @Test func `A quick audit finds missing and truncated files, and a sample finds damaged bytes`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add(Array(0..<10), to: $0) }
            var generator = SeededGenerator(seed: 1)
            func path(_ number: Int) -> String {
                depot.cache.path(of: BlobHash(of: Depot.bytes(number, count: 100))).string
            }
            try Damage.remove.happen(to: path(0), other: "", &generator)
            try Damage.truncate.happen(to: path(1), other: "", &generator)
            try Damage.flip.happen(to: path(2), other: "", &generator)
            var options = CacheAudit.Options()
            options.depth = .quick
            options.repairs = true
            let quick = try await CacheAudit.run(store: depot.store, cache: depot.cache, options: options)
            #expect((quick.missing.count, quick.damaged.count, quick.good) == (1, 1, 8))
            #expect(quick.repairJobs.count == 1)
            let job = try #require(quick.repairJobs.first)
            #expect(try await depot.store.reports.progress(job: job)?.total == 2)
            options.depth = .sample(percent: 0)
            let none = try await CacheAudit.run(store: depot.store, cache: depot.cache, options: options)
            #expect(none.isSound)
            options.depth = .sample(percent: 100)
            let all = try await CacheAudit.run(store: depot.store, cache: depot.cache, options: options)
            #expect(all.damaged.count == 1)
        }
    }

    @Test func `A stopped verification resumes where it stopped`() async throws {
        try await withDepot { depot in
            _ = try await depot.withPublisher { try await depot.add(Array(0..<30), to: $0) }
            let hashes = try await depot.store.cache.blobs(after: "", limit: 100).map(\.hash)
            try await depot.store.cache.setProperty("verify", to: hashes[19])
            var options = CacheAudit.Options()
            options.resumes = true
            let rest = try await CacheAudit.run(store: depot.store, cache: depot.cache, options: options)
            #expect(rest.good == 10)
            let again = try await CacheAudit.run(store: depot.store, cache: depot.cache, options: options)
            #expect(again.good == 30)
        }
    }
}

import ContentCache
import Foundation
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// Variants in a cache with a limit: the output of helpers is in the cache only once its space is reserved.
@Suite(
    "Variants in a cache with a limit", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct OutputTests {
    private static let url = "data:image/jpeg;base64," + Data(Pictures.jpeg).base64EncodedString()
    private static let variants = "a=40x30,fill,enlarge,png b=30x20,fill,enlarge,tiff c=16x12,webp"

    /// What one picture's variants come to: the class of a failure, or each variant with its blob.
    private func results(_ change: (inout WorkerConfiguration) -> Void) async throws -> [String] {
        try await withWorkplace(configure: { configuration in
            configuration.local.allowsData = true
            change(&configuration)
        }) { place in
            let job = try await place.enqueue([Self.url], variants: Self.variants, options: "discard-original")
            try await place.drain()
            #expect(try await place.store.cache.totals().reservedBytes == 0)
            return try await place.store.reports.results(job: job, after: 0, limit: 10).map { row in
                row.failure.map { "\($0): \(row.message ?? "")" } ?? "\(row.variant ?? ""): \(row.blob ?? "")"
            }
        }
    }

    @Test func `The same files are made with and without a limit, for every size of output memory`() async throws {
        let free = try await results { _ in }
        #expect(free.count == 3)
        for bytes in [32 << 20, 3, 600] {
            let limited = try await results { configuration in
                configuration.cachePolicy.maxBytes = 1 << 30
                configuration.helpers.outputBytes = bytes
            }
            #expect(limited == free, "\(bytes) bytes in memory")
        }
    }

    @Test(arguments: [32 << 20, 3])
    func `Variants that exceed the cache's limit fail with class transform`(_ memory: Int) async throws {
        let results = try await results { configuration in
            configuration.cachePolicy.maxBytes = Int64(Pictures.jpeg.count + 100)
            configuration.helpers.outputBytes = memory
        }
        let told = "transform: The source and its variants together are over the cache's limit (--cache-max-size)."
        #expect(results == [told])
    }

    @Test func `A file in memory is on another device than the cache`() throws {
        try withTemporaryDirectory { folder in
            let cache = try ContentCache(directory: folder)
            func device(_ file: BlobFile) -> dev_t {
                var info = stat()
                fstat(file.descriptor.rawValue, &info)
                return info.st_dev
            }
            let own = try OutputTarget().makeFile(in: cache)
            let file = try OutputTarget(isInMemory: true, most: 10).makeFile(in: cache)
            #expect(device(file) != device(own))
        }
    }

    @Test func `Reserved space that was not written is given back`() async throws {
        try await withDepot { depot in
            let budget = CacheBudget(store: depot.store, collector: depot.collector { $0.maxBytes = 1_000 })
            budget.use(by: depot.worker)
            var rooms = try await budget.reservations(2, of: 400)
            #expect(try await depot.store.cache.totals().reservedBytes >= 800)
            rooms[0].shrink(to: 100)
            rooms[1].shrink(to: 500)
            #expect(rooms.map(\.bytes) == [100, 400])
            let more = try await budget.reservations(1, of: 500)
            #expect(try await depot.store.cache.totals().reservedBytes <= 1_000)
            withExtendedLifetime(more) { rooms = [] }
        }
    }

    @Test func `A local file that the cache can't hold is too large`() async throws {
        try await withWorkplace(configure: { configuration in
            configuration.local.allowsData = true
            configuration.cachePolicy.maxBytes = Int64(Pictures.jpeg.count - 1)
        }) { place in
            let job = try await place.enqueue([Self.url])
            try await place.drain()
            #expect(try await place.item(job).failure == "too-large")
        }
    }
}

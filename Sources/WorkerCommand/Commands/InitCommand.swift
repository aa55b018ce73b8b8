import ArgumentParser
import ContentCache
import Jobs
import PrefetchWorker

struct InitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Creates the database and the cache, so that jobs can be inserted with SQL.",
        discussion: """
            It can be repeated: it changes nothing that exists. You need not call it: `enqueue` creates a missing database, and \
            `run` creates a missing database and cache. Only `init` creates a missing bucket.

            EXAMPLES:
              worker init
              worker init --db /var/lib/worker/worker.db --cache /var/cache/worker
              worker init --cache s3://pictures/shop --cache-folder /var/cache/worker
            """,
    )

    @OptionGroup var common: CommonOptions

    func run() async throws {
        try await reportingErrors {
            try common.cacheLocation(try common.settings()).makeBucketIfMissing()
            let cache = try common.openCache(isNew: true)
            try await common.withStore(missing: .create) { store in
                try await CacheOwnership.check(store, cache)
                Terminal.print("database \(store.path)")
                Terminal.print("cache    \(cache.name)")
            }
        }
    }
}

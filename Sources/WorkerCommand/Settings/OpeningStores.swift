import ContentCache
import Jobs
import PrefetchWorker

extension CommonOptions {
    /// Opens the database for a command that changes it, calls `body`, and closes it, also after an error. If another
    /// program is writing, the command names it after two seconds, and gives up after `--wait`.
    func withStore<R>(missing: DatabaseGate.Missing = .refuse, _ body: (JobStore) async throws -> R) async throws -> R {
        let settings = try settings()
        let waiting = try waiting(settings) { Terminal.error("worker: \($0)") }
        return try await using(try JobStore(path: databasePath(settings), missing: missing, waiting: waiting), body)
    }

    /// - Parameter announce: prints the sentence that names the program for which a write waits.
    func waiting(_ settings: Settings, _ announce: @escaping @Sendable (String) -> Void) throws -> WriteWaiting {
        WriteWaiting(limit: try settings.value(CommonSettings.waiting, wait), announce: announce)
    }

    /// The same for a command that only reads: it waits for no writer.
    func readingStore<R>(_ body: (JobStore) async throws -> R) async throws -> R {
        try await using(try JobStore.reading(path: databasePath(try settings())), body)
    }

    private func using<R>(_ store: JobStore, _ body: (JobStore) async throws -> R) async throws -> R {
        do {
            let result = try await body(store)
            try await store.close()
            return result
        } catch {
            // Best effort: the first error is the one to report, and the end of the process closes the database too.
            try? await store.close()
            throw error
        }
    }

    /// - Parameter isNew: whether to make the cache if it is missing.
    func openCache(isNew: Bool = false) throws -> ContentCache {
        let settings = try settings()
        return try cacheLocation(settings).open(isNew: isNew)
    }

    /// Opens an existing cache, with the database that it belongs to.
    func withCache<R>(_ body: (JobStore, ContentCache) async throws -> R) async throws -> R {
        try await withStore { store in try await check(store, body) }
    }

    /// The same for a command that reads.
    func readingCache<R>(_ body: (JobStore, ContentCache) async throws -> R) async throws -> R {
        try await readingStore { store in try await check(store, body) }
    }

    private func check<R>(_ store: JobStore, _ body: (JobStore, ContentCache) async throws -> R) async throws -> R {
        let cache = try openCache()
        try await CacheOwnership.check(store, cache)
        return try await body(store, cache)
    }
}

import ContentCache
import Jobs
import PrefetchWorker
import SystemPackage

extension CommonOptions {
    /// Opens the database, hands it to `body`, and closes it whatever happens.
    func withStore<R>(missing: JobStore.Missing = .refuse, _ body: (JobStore) async throws -> R) async throws -> R {
        let store = try JobStore(path: databasePath(try settings()), missing: missing)
        do {
            let result = try await body(store)
            try await store.close()
            return result
        } catch {
            // The first fault is the one to tell; closing is repeated by the end of the process.
            try? await store.close()
            throw error
        }
    }

    /// - Parameter isNew: whether it may be made where it is missing.
    func openCache(isNew: Bool = false) throws -> ContentCache {
        try ContentCache(directory: FilePath(cachePath(try settings())), isNew: isNew)
    }

    /// Opens a cache that is there, with the database that it belongs to.
    func withCache<R>(_ body: (JobStore, ContentCache) async throws -> R) async throws -> R {
        try await withStore { store in
            let cache = try openCache()
            try await CacheBond.check(store, cache)
            return try await body(store, cache)
        }
    }
}

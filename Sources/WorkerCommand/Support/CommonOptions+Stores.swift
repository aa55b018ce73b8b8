import ContentCache
import Jobs
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

    func openCache() throws -> ContentCache {
        try ContentCache(directory: FilePath(cachePath(try settings())))
    }
}

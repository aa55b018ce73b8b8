internal import ContentCache
internal import Glibc
internal import Jobs
internal import SystemPackage

/// A cache that is asked after the main one and never written to.
struct ReadOnlyCache: Sendable {
    let cache: ContentCache
    let store: JobStore

    /// - Parameter folder: the cache's folder; its database is `worker.db` in it or beside it.
    init(_ folder: String) throws {
        cache = try ContentCache(readOnly: FilePath(folder))
        let places = [cache.directory, cache.directory.removingLastComponent()].map { $0.appending("worker.db").string }
        guard let database = places.first(where: { access($0, R_OK) == 0 }) else {
            throw WorkerError(
                .cannotCreate,
                "The read-only cache \(folder) has no database: it must lie in it or beside it, as worker.db.")
        }
        store = try JobStore(readOnly: database)
    }
}

internal import ContentCache
internal import Core
internal import Jobs

/// Deletes files of the cache between two transactions of the database, never inside one.
///
/// One program of a machine deletes at a time, and it deletes only files that no worker has open. A worker holds every file that it
/// is about to record, from before the file has its name until the transaction is committed. So no deleted file is
/// being published or recorded on this machine at that moment. For other machines, the database knows what is announced.
struct FileRemover: Sendable {
    private let eviction: CacheEviction
    private let cache: any BlobStore
    private let disk = BlockingQueue("cache.remover")
    /// Serializes the tasks of this process, which must not occupy the queue while they wait for each other.
    private let turns = KeyedLock()

    init(_ eviction: CacheEviction, _ cache: any BlobStore) {
        self.eviction = eviction
        self.cache = cache
    }

    /// Deletes the files and rows of dying blobs, for one slice. If a file can't be deleted, its row stays for a later
    /// collection.
    func removeDying() async throws -> CacheEviction.Removal {
        var removal = CacheEviction.Removal()
        let (dying, isLimited) = try await eviction.dying()
        guard !dying.isEmpty else { return removal }
        await turns.lock(Self.key)
        defer { turns.unlock(Self.key) }
        let turn = try await turn()
        defer { withExtendedLifetime(turn) {} }
        let (unused, inUse, unlocked) = await sorted(dying)
        removal.inUse = dying.filter(inUse.contains)
        let (forgotten, announced, isUnfinished) = try await eviction.forgetDying(
            dying.filter { !inUse.contains($0) && unlocked[$0] == nil })
        removal.inUse += announced
        let failures = await remove(forgotten.compactMap { unused[$0] }, turn)
        removal.stuck = forgotten.filter { failures[$0] != nil } + unlocked.keys
        removal.gone = forgotten.filter { failures[$0] == nil }
        removal.trouble = removal.stuck.last.flatMap { failures[$0] ?? unlocked[$0] }
        // No statement can look up a row whose hash is not text, so such rows stay. If a slice met no other rows, no
        // further slice follows.
        let isProgress = !(removal.inUse.isEmpty && removal.stuck.isEmpty && removal.gone.isEmpty)
        removal.isUnfinished = isUnfinished || (isLimited && isProgress)
        return try await eviction.settle(removal)
    }

    /// Deletes files that the index does not know. It queries the index again once no worker can record them any more.
    ///
    /// - Returns: the files that were deleted.
    func removeUnknown(_ hashes: [String]) async throws -> [String] {
        await turns.lock(Self.key)
        defer { turns.unlock(Self.key) }
        let turn = try await turn()
        defer { withExtendedLifetime(turn) {} }
        let unused = await sorted(hashes).unused
        let unknown = try await eviction.removable(unknown: hashes.filter { unused[$0] != nil })
        let failures = await remove(unknown.compactMap { unused[$0] }, turn)
        try await eviction.endRemoval(of: unknown)
        return unknown.filter { failures[$0] == nil }
    }

    private static let key = "turn"

    private func turn() async throws -> DeletionTurn {
        try await disk.run { [cache] in Result { () throws(CacheError) in try cache.turnToDelete() } }.get()
    }

    private typealias Sorted = (unused: [String: UnusedBlob], inUse: Set<String>, unlocked: [String: String])

    /// Blobs that may be deleted, blobs that a worker has open, and the errors of blobs that can't be locked. Text that is
    /// no hash has no file, and is in none of them.
    private func sorted(_ hashes: [String]) async -> Sorted {
        await disk.run { [cache] in
            var sorted: Sorted = ([:], [], [:])
            for hash in hashes.compactMap({ BlobHash($0) }) {
                do throws(CacheError) {
                    if let blob = try cache.unused(hash) {
                        sorted.unused[hash.hex] = blob
                    } else {
                        sorted.inUse.insert(hash.hex)
                    }
                } catch {
                    sorted.unlocked[hash.hex] = error.message
                }
            }
            return sorted
        }
    }

    /// - Returns: the errors, by the hashes of the files that still exist.
    private func remove(_ blobs: [UnusedBlob], _ turn: DeletionTurn) async -> [String: String] {
        await disk.run { [cache] in
            let errors = cache.remove(blobs, in: turn)
            return zip(blobs, errors).reduce(into: [:]) { failures, removed in
                failures[removed.0.hash.hex] = removed.1?.message
            }
        }
    }
}

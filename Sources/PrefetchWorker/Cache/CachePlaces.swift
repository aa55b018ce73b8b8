internal import ContentCache
internal import FoundationEssentials
internal import Glibc
internal import Jobs
internal import SystemPackage

/// The paths of a database and a cache when they were last used together. A copy of both has the same name as the
/// original, and only the paths tell the copy's database from the original's.
///
/// The database and the cache each record the other's path and inode; a pair moved or restored together is accepted. A
/// database with the cache of its original, or a cache with the database of its original, is refused as long as the
/// original exists.
struct CachePlaces {
    /// The recorded path and inode of a file or folder, or the URL and the number of a PostgreSQL database.
    struct Place: Codable, Hashable {
        let path: String
        let inode: UInt64
        /// Of a PostgreSQL database; nil for a file.
        private(set) var server: String?

        init?(_ path: String) {
            var info = stat()
            guard stat(path, &info) == 0 else { return nil }
            self.path = path
            inode = UInt64(info.st_ino)
        }

        /// - Parameter server: see ``DatabaseGate/identity()``.
        init(_ path: String, server: String) {
            self.path = path
            inode = 0
            self.server = server
        }

        /// Whether the file is still at its path. If that can't be found out, it may be.
        var isThere: Bool {
            guard server == nil else { return true }
            var info = stat()
            if stat(path, &info) == 0 { return UInt64(info.st_ino) == inode }
            return errno != ENOENT && errno != ENOTDIR
        }

        /// Whether this is another file than `now`. In a snapshot of a whole file system the inodes may be equal: then
        /// the file at the old path is on another device.
        func isOther(than now: Place) -> Bool {
            if inode != now.inode { return true }
            var (old, new) = (stat(), stat())
            guard path != now.path, stat(path, &old) == 0, stat(now.path, &new) == 0 else { return false }
            return UInt64(old.st_ino) == inode && old.st_dev != new.st_dev
        }
    }

    private let store: JobStore
    private let cache: ContentCache
    /// Nil for PostgreSQL.
    private let database: Place?
    private let folder: Place?

    init(_ store: JobStore, _ cache: ContentCache) {
        self.store = store
        self.cache = cache
        database = Place(store.database.fileName)
        folder = Place(cache.directory.string)
    }

    /// The name that a copied pair gets instead of its original's. It is derived from the inodes of both, so that two
    /// programs that first use the copy at the same time derive the same name, and an interrupted renaming is
    /// recognized and completed.
    func name(ofCopy original: String) -> String {
        let text = "\(original) \(database?.inode ?? 0) \(folder?.inode ?? 0)"
        return (0..<2 as Range<UInt64>).map { seed in
            // FNV-1a; the name only has to be different.
            let hash = text.utf8.reduce(14_695_981_039_346_656_037 ^ seed) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
            return String(hash | 1 << 60, radix: 16)
        }.joined()
    }

    /// - Parameter name: the name of both.
    /// - Throws: `cannotCreate` if one of them is a copy and the other is the original.
    func check(name: String) async throws {
        guard let folder else { return }
        guard let database else { return try await checkServer(folder) }
        if cache.backing != nil { return try await checkBucket(database, folder) }
        let known = try await (
            folder: Self.decoded(store.cache.property(CacheIndex.placeProperty)),
            database: try Self.decoded(cache.identity.owner())
        )
        // The pair was copied and renamed, and the program was killed before it had recorded all of it.
        let before = try await store.cache.property(CacheIndex.nameBeforeProperty)
        let isNamed = before.map { self.name(ofCopy: $0) == name } ?? false
        let isFolderOther = known.folder?.isOther(than: folder) ?? false
        let isDatabaseOther = known.database?.isOther(than: database) ?? false
        let isOriginalThere = (folder: known.folder?.isThere ?? false, database: known.database?.isThere ?? false)
        if isFolderOther, !isDatabaseOther, isOriginalThere.folder, !isNamed {
            let own = known.folder?.path ?? "its own"
            throw refusal(
                // Best effort: it is refused either way, and a cache that can't be read is not called empty.
                (try? cache.hasNoBlobs()) == true
                    ? "the pictures of \(store.path) are in the cache \(own), and \(cache.directory) has none"
                    : "the cache \(cache.directory) is a copy of \(own)")
        }
        if isDatabaseOther, !isFolderOther, isOriginalThere.database, !isNamed {
            throw refusal("the database \(store.path) is a copy of \(known.database?.path ?? "its own")")
        }
        let isCopiedPair =
            isFolderOther && isDatabaseOther && isOriginalThere.folder && isOriginalThere.database && !isNamed
        guard isCopiedPair || known.folder != folder || known.database != database else { return }
        do {
            if isCopiedPair {
                let own = self.name(ofCopy: name)
                try cache.identity.change(to: own)
                try await store.cache.rename(from: name, to: own)
            }
            try await store.cache.setProperty(CacheIndex.placeProperty, to: Self.encoded(folder))
            try cache.identity.setOwner(Self.encoded(database))
        } catch let error as JobsError where error.code == .busy || error.code == .cannotOpen {
            // A command that only reads leaves the record to the next one that writes.
            return
        } catch let error as CacheError where error.code == .disk || error.code == .diskFull {
            // If this user may only read the cache, or its disk is full, the next program that can write records it.
            return
        }
    }

    /// Checks the bucket's owner and the folder in front of it. Any folder will do, but all running workers must use
    /// the same folder, since its file locks protect the blobs from deletion.
    private func checkBucket(_ database: Place, _ folder: Place) async throws {
        let owner = try Self.decoded(cache.identity.owner())
        if let owner, owner.isOther(than: database), owner.isThere {
            throw refusal("the database \(store.path) is a copy of \(owner.path)")
        }
        let known = try await Self.decoded(store.cache.property(CacheIndex.placeProperty))
        if let known, known.isOther(than: folder),
            try await store.eviction.earliestStart(butNot: nil) != nil
        {
            throw WorkerError(
                .cannotCreate,
                "Workers of \(store.path) use the folder \(known.path) in front of \(cache.name): name it with --cache-folder."
            )
        }
        if owner != database { try cache.identity.setOwner(Self.encoded(database)) }
        guard known != folder else { return }
        do {
            try await store.cache.setProperty(CacheIndex.placeProperty, to: Self.encoded(folder))
        } catch let error as JobsError where error.code == .busy || error.code == .cannotOpen {
            // A command that only reads leaves the record to the next one that writes.
            return
        }
    }

    /// Checks the cache's owner where the database is PostgreSQL's. Its files can't be looked at, so another database is
    /// taken for one that is in use; except for one of SQLite, which was moved to the server.
    private func checkServer(_ folder: Place) async throws {
        guard let identity = try await store.database.identity() else { return }
        let database = Place(store.path, server: identity)
        let owner = try Self.decoded(cache.identity.owner())
        if let server = owner?.server, server != identity {
            throw refusal(
                "\(cache.name) belongs to the database \(owner?.path ?? ""), and \(store.path) is a copy of it, on another "
                    + "server or with another name. If that database is no longer used, empty the file CACHE_OWNER in the cache"
            )
        }
        do {
            if owner?.server != identity { try cache.identity.setOwner(Self.encoded(database)) }
            guard cache.backing == nil else { return }
            let known = try await Self.decoded(store.cache.property(CacheIndex.placeProperty))
            if known != folder { try await store.cache.setProperty(CacheIndex.placeProperty, to: Self.encoded(folder)) }
        } catch let error as JobsError where error.code == .busy || error.code == .cannotOpen {
            // A command that only reads leaves the record to the next one that writes.
            return
        } catch let error as CacheError where error.code == .disk || error.code == .diskFull {
            // This user may only read the cache, or its disk is full.
            return
        }
    }

    /// Whether the files of a PostgreSQL database are in another folder, which may be one of another machine.
    ///
    /// - Returns: its path.
    func otherFolder() async throws -> String? {
        guard let folder, database == nil, cache.backing == nil,
            let known = try await Self.decoded(store.cache.property(CacheIndex.placeProperty))
        else { return nil }
        return known.inode == folder.inode && known.path == folder.path ? nil : known.path
    }

    private func refusal(_ what: String) -> WorkerError {
        WorkerError(
            .cannotCreate,
            """
            The database and the cache don't belong together: \(what). Two databases on one cache delete each other's files. Name a \
            database and its own cache with --db and --cache.
            """)
    }

    private static func encoded(_ place: Place) throws -> String {
        String(decoding: try JSONEncoder().encode(place), as: UTF8.self)
    }

    /// - Returns: nil for an empty record, which stands for none.
    private static func decoded(_ text: String?) throws -> Place? {
        guard let text, text.contains(where: { !$0.isWhitespace }) else { return nil }
        do {
            return try JSONDecoder().decode(Place.self, from: Data(text.utf8))
        } catch {
            // If an unreadable record counted as none, a copy could be used beside its original.
            throw WorkerError(
                .cannotCreate,
                "The record of where the database and the cache were can't be read: \(text.prefix(80)). If neither is a "
                    + "copy that is in use elsewhere, empty the file CACHE_OWNER in the cache.")
        }
    }
}

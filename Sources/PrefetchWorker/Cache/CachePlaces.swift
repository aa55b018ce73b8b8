internal import ContentCache
internal import FoundationEssentials
internal import Glibc
internal import Jobs
internal import SystemPackage

/// Where a database and a cache were when they were last used together: a copy of both has the same name as the original, and
/// only this tells a copy's database from the original's.
///
/// Each remembers the other's path and inode. What was moved, restored or copied as a pair is taken as it is; a database beside
/// the cache of its original, or the other way around, is refused as long as the original is there.
struct CachePlaces {
    /// A file or folder, as it was.
    struct Place: Codable, Hashable {
        let path: String
        let inode: UInt64

        init?(_ path: String) {
            var info = stat()
            guard stat(path, &info) == 0 else { return nil }
            self.path = path
            inode = UInt64(info.st_ino)
        }

        /// Whether it is still where it was.
        var isThere: Bool { Place(path) == self }

        /// Whether this is another file than `now`. Inodes may be equal in a snapshot of a whole file system: then the file at the
        /// old path lies on another device.
        func isOther(than now: Place) -> Bool {
            if inode != now.inode { return true }
            var (old, new) = (stat(), stat())
            guard path != now.path, stat(path, &old) == 0, stat(now.path, &new) == 0 else { return false }
            return UInt64(old.st_ino) == inode && old.st_dev != new.st_dev
        }
    }

    private let store: JobStore
    private let cache: ContentCache
    private let database: Place?
    private let folder: Place?

    init(_ store: JobStore, _ cache: ContentCache) {
        self.store = store
        self.cache = cache
        database = Place(store.database.fileName)
        folder = Place(cache.directory.string)
    }

    /// The name that a copied pair gets instead of its original's. It is made of what both have, so that two programs that use
    /// the copy for the first time at once make the same, and a change that was broken off is known and completed.
    func name(ofCopy original: String) -> String {
        let text = "\(original) \(database?.inode ?? 0) \(folder?.inode ?? 0)"
        return (0..<2 as Range<UInt64>).map { seed in
            // FNV-1a; it only has to differ.
            let hash = text.utf8.reduce(14_695_981_039_346_656_037 ^ seed) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
            return String(hash | 1 << 60, radix: 16)
        }.joined()
    }

    /// - Parameter name: what both are called.
    /// - Throws: `cannotCreate` where one of them is a copy and the other is its original's.
    func check(name: String) async throws {
        guard let database, let folder else { return }
        let known = try await (
            folder: Self.decoded(store.cache.property(CacheIndex.placeProperty)),
            database: Self.decoded(cache.owner())
        )
        // A copied pair that was given its name, and was killed before all of it was written down: it is no stranger to itself.
        let before = try await store.cache.property(CacheIndex.nameBeforeProperty)
        let isNamed = before.map { self.name(ofCopy: $0) == name } ?? false
        let isFolderOther = known.folder?.isOther(than: folder) ?? false
        let isDatabaseOther = known.database?.isOther(than: database) ?? false
        let isOriginalThere = (folder: known.folder?.isThere ?? false, database: known.database?.isThere ?? false)
        if isFolderOther, !isDatabaseOther, isOriginalThere.folder, !isNamed {
            throw refusal("the cache \(cache.directory) is a copy of \(known.folder?.path ?? "its own")")
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
                try cache.changeIdentity(to: own)
                try await store.cache.rename(from: name, to: own)
            }
            try await store.cache.setProperty(CacheIndex.placeProperty, to: Self.encoded(folder))
            try cache.setOwner(Self.encoded(database))
        } catch let error as JobsError where error.code == .busy || error.code == .cannotOpen {
            // A command that only reads leaves it to the next that writes.
            return
        } catch let error as CacheError where error.code == .disk || error.code == .diskFull {
            // A cache that this user may only read, or on a disk without room, is named by the next that can write to it.
            return
        }
    }

    private func refusal(_ what: String) -> WorkerError {
        WorkerError(
            .cannotCreate,
            """
            They don't belong together: \(what). What one of them forgets or deletes, the other would miss. Name the \
            database and the cache of the same copy with --db and --cache.
            """)
    }

    private static func encoded(_ place: Place) throws -> String {
        String(decoding: try JSONEncoder().encode(place), as: UTF8.self)
    }

    /// An unreadable file says nothing.
    private static func decoded(_ text: String?) -> Place? {
        text.flatMap { try? JSONDecoder().decode(Place.self, from: Data($0.utf8)) }
    }
}

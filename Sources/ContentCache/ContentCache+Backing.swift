internal import Core
internal import Glibc
internal import Synchronization
internal import SystemPackage

// With a backing store the folder has only blobs in use. Its locks still decide who may delete what: a program that
// deletes a blob holds the exclusive lock of its file, and makes an empty one to lock where the folder has none. A worker
// that stores a blob holds the shared lock from before it sends the bytes until the index has recorded it.
extension ContentCache {
    /// Stores a group in the backing store, after its files have their names and locks.
    func storeBehind(_ group: [PendingBlob], _ outcome: inout Publication) {
        guard let backing else { return }
        // Of several equal blobs the first is sent.
        var firsts: [BlobHash: Int] = [:]
        for index in group.indices where outcome.errors[index] == nil {
            firsts[group[index].hash] = firsts[group[index].hash] ?? index
        }
        let sent = firsts.values.sorted()
        let errors = backing.store(sent.map { group[$0] })
        for (index, error) in zip(sent, errors) {
            guard let error else { continue }
            for other in group.indices where group[other].hash == group[index].hash { outcome.errors[other] = error }
            outcome.files[group[index].hash] = nil
        }
    }

    /// Fetches a blob into the folder.
    ///
    /// - Returns: the file that has the name now, with its shared lock; nil if the backing store has no such blob.
    func fetched(_ hash: BlobHash) throws(CacheError) -> PendingBlob? {
        guard let backing else { return nil }
        let file = try makeFile()
        guard let size = try backing.fetch(hash, into: file) else { return nil }
        let blob = PendingBlob(file: file, hash: hash, size: size)
        try complete(blob)
        return PendingBlob(file: try link(blob), hash: hash, size: size)
    }

    /// Holds a blob that the index may not have, so that it can be recorded: the folder's file may never have reached
    /// the backing store, or may have been fetched while another program deleted the blob there.
    func heldAndStored(_ hash: BlobHash, size: Int64) throws(CacheError) -> BlobFile? {
        guard let backing else { return try held(hash, size: size) }
        var file = try held(hash, size: size)
        if let found = file, try BlobHash.reading(found.descriptor).hash != hash {
            try putAside(hash, found)
            file = nil
        }
        if file == nil, let blob = try fetched(hash), blob.size == size { file = blob.file }
        guard let file else { return nil }
        if let error = backing.store([PendingBlob(file: file, hash: hash, size: size)]).first ?? nil { throw error }
        return file
    }

    /// Makes and locks an empty file under the name of a blob that the folder does not have, so that no worker can
    /// publish the blob until it is deleted.
    ///
    /// - Returns: the file; nil if a worker published the blob meanwhile.
    func placeholder(of hash: BlobHash) -> CInt? {
        guard let file = try? makeDescriptor().rawValue else { return nil }
        if flock(file, LOCK_EX | LOCK_NB) == 0,
            linkat(AT_FDCWD, "/proc/self/fd/\(file)", AT_FDCWD, name(of: hash), AT_SYMLINK_FOLLOW) == 0
        {
            return file
        }
        Glibc.close(file)
        return nil
    }

    /// Bytes in the folder in front of a backing store, approximately: other processes' files are counted once a minute.
    /// Nil without a backing store.
    public func folderBytes() throws -> Int64? {
        guard backing != nil else { return nil }
        if let known = folderMeter.bytes { return known }
        var total: Int64 = 0
        for shard in 0..<256 {
            for hash in try files(inShard: shard) { total += size(of: hash) ?? 0 }
        }
        folderMeter.set(total)
        return total
    }

    /// Deletes the files that were not used for the longest time, until the folder has at most this many bytes. The
    /// backing store keeps its blobs. Files in use stay.
    ///
    /// - Returns: how many files and bytes were deleted.
    @discardableResult
    public func trim(to limit: Int64) throws -> (files: Int, bytes: Int64) {
        guard backing != nil else { return (0, 0) }
        var all: [(hash: BlobHash, size: Int64, used: Int64)] = []
        var total: Int64 = 0
        for shard in 0..<256 {
            for hash in try files(inShard: shard) {
                var info = stat()
                guard lstat(name(of: hash), &info) == 0 else { continue }
                all.append((hash, Int64(info.st_size), Int64(info.st_atim.tv_sec)))
                total += Int64(info.st_size)
            }
        }
        folderMeter.set(total)
        guard total > limit else { return (0, 0) }
        all.sort { $0.used < $1.used }
        var gone = (files: 0, bytes: Int64(0))
        var rest = all[...]
        while total - gone.bytes > limit, !rest.isEmpty {
            // In slices, so that others get their turn.
            let turn = try turnToDelete()
            for (hash, size, _) in rest.prefix(64) where total - gone.bytes > limit {
                guard let blob = unusedFile(hash), Glibc.unlink(name(of: hash)) == 0 else { continue }
                withExtendedLifetime((turn, blob)) {}
                gone.files += 1
                gone.bytes += size
            }
            rest = rest.dropFirst(64)
        }
        folderMeter.set(total - gone.bytes)
        return gone
    }

    /// Notes the use of a file, for ``trim(to:)``. Best effort: file systems may be mounted without times of use.
    func noteUse(_ file: BlobFile) {
        guard backing != nil else { return }
        // UTIME_NOW and UTIME_OMIT of sys/stat.h, which Swift can't import: the time of use is now, the other stays.
        let times = [(1 << 30) - 1, (1 << 30) - 2].map { timespec(tv_sec: 0, tv_nsec: $0) }
        _ = futimens(file.descriptor.rawValue, times)
    }
}

// MARK: - Whose folder it is

extension ContentCache {
    private static let markerName = "CACHE_BACKED_BY"

    /// Checks that a folder with a backing store is not used without it, and the other way round: each would delete
    /// the other's blobs.
    func checkBacking() throws(CacheError) {
        let marker = directory.appending(Self.markerName)
        let found = try Folders.smallFile(marker)?.filter { $0 != "\n" }
        switch (found, backing?.name) {
        case (nil, nil): return
        case (let found?, let name?) where found == name: return
        case (let found?, nil):
            throw CacheError(
                .cannotCreate,
                "\(directory) holds copies of what is in \(found): use it with --cache \(found), or name another folder."
            )
        case (let found?, let name?):
            throw CacheError(
                .cannotCreate,
                "\(directory) holds copies of what is in \(found), and not in \(name): name another folder with --cache-folder."
            )
        case (nil, let name?):
            let isEmpty: Bool
            do { isEmpty = try hasNoFiles() } catch { throw CacheError(.disk, "\(directory) can't be read: \(error)") }
            guard isEmpty else {
                throw CacheError(
                    .cannotCreate,
                    """
                    \(directory) is a cache of its own. Name another folder with --cache-folder; or, to move its files to \
                    \(name), see: worker cache upload --help
                    """)
            }
            try write(name + "\n", to: marker)
        }
    }
}

/// Counts the bytes of a folder between two looks at its files.
final class FolderMeter: Sendable {
    private static let validity = Duration.seconds(60)
    private let state = Mutex<(bytes: Int64, until: ContinuousClock.Instant)?>(nil)

    /// Nil if it is time to look again.
    var bytes: Int64? { state.withLock { state in state.flatMap { $0.until > .now ? $0.bytes : nil } } }

    func set(_ bytes: Int64) { state.withLock { $0 = (bytes, .now + Self.validity) } }

    func add(_ bytes: Int64) { state.withLock { $0?.bytes += bytes } }
}

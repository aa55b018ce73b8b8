internal import Core
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The folder in front of a backing store, which keeps the blobs in use.
public struct FrontFolder: Sendable {
    let cache: ContentCache

    /// Bytes in the folder, approximately: other processes' files are counted once a minute.
    public func bytes() throws -> Int64 {
        if let known = cache.folderMeter.bytes { return known }
        var total: Int64 = 0
        for shard in 0..<256 {
            for hash in try cache.files(inShard: shard) { total += try cache.size(of: hash) ?? 0 }
        }
        cache.folderMeter.set(total)
        return total
    }

    /// Deletes the files that were not used for the longest time, until the folder has at most this many bytes. The
    /// backing store keeps its blobs. Files in use stay.
    ///
    /// - Returns: how many files and bytes were deleted.
    @discardableResult
    public func trim(to limit: Int64) throws -> (files: Int, bytes: Int64) {
        var all: [(hash: BlobHash, size: Int64, used: Int64)] = []
        var total: Int64 = 0
        for shard in 0..<256 {
            for hash in try cache.files(inShard: shard) {
                var info = stat()
                guard lstat(cache.name(of: hash), &info) == 0 else { continue }
                all.append((hash, Int64(info.st_size), Int64(info.st_atim.tv_sec)))
                total += Int64(info.st_size)
            }
        }
        cache.folderMeter.set(total)
        guard total > limit else { return (0, 0) }
        all.sort { $0.used < $1.used }
        var gone = (files: 0, bytes: Int64(0))
        var rest = all[...]
        while total - gone.bytes > limit, !rest.isEmpty {
            // The lock is released after every 64 files, so that other programs can delete files in between.
            let turn = try cache.turnToDelete()
            for (hash, size, _) in rest.prefix(64) where total - gone.bytes > limit {
                guard let blob = cache.unusedFile(hash), Glibc.unlink(cache.name(of: hash)) == 0 else { continue }
                withExtendedLifetime((turn, blob)) {}
                gone.files += 1
                gone.bytes += size
            }
            rest = rest.dropFirst(64)
        }
        cache.folderMeter.set(total - gone.bytes)
        return gone
    }

    /// Sets a file's time of use to now, for ``trim(to:)``. Best effort: the file may belong to another user.
    func noteUse(_ file: BlobFile) {
        var info = stat()
        // Not at each use: setting the time also changes the file's ctime, by which a verified file is recognized.
        guard fstat(file.descriptor.rawValue, &info) == 0, time(nil) - info.st_atim.tv_sec > 3_600
        else { return }
        // UTIME_NOW and UTIME_OMIT of sys/stat.h, which Swift can't import: the time of use is now, the other stays.
        let times = [(1 << 30) - 1, (1 << 30) - 2].map { timespec(tv_sec: 0, tv_nsec: $0) }
        _ = futimens(file.descriptor.rawValue, times)
    }

    // MARK: - Ownership

    private static let markerName = "CACHE_BACKED_BY"

    /// Checks that a folder with a backing store is not used without that store, and that a folder without one is not
    /// used with one: programs that use the folder in these two ways would delete each other's blobs.
    static func check(_ cache: ContentCache) throws(CacheError) {
        let directory = cache.directory
        let marker = directory.appending(markerName)
        let found = try Folders.smallFile(marker)?.filter { $0 != "\n" }
        switch (found, cache.backing?.name) {
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
            do { isEmpty = try cache.hasNoFiles() } catch {
                throw CacheError(.disk, "\(directory) can't be read: \(error)")
            }
            guard isEmpty else {
                throw CacheError(
                    .cannotCreate,
                    """
                    \(directory) is a cache of its own. Name another folder with --cache-folder; or, to move its files to \
                    \(name), see: worker cache upload --help
                    """)
            }
            try cache.write(name + "\n", to: marker)
        }
    }
}

/// Estimates the folder's size in bytes between two scans of its files.
final class FolderMeter: Sendable {
    private static let validity = Duration.seconds(60)
    private let state = Mutex<(bytes: Int64, until: ContinuousClock.Instant)?>(nil)

    /// Nil if the last scan is over a minute old.
    var bytes: Int64? { state.withLock { state in state.flatMap { $0.until > .now ? $0.bytes : nil } } }

    func set(_ bytes: Int64) { state.withLock { $0 = (bytes, .now + Self.validity) } }

    func add(_ bytes: Int64) { state.withLock { $0?.bytes += bytes } }
}

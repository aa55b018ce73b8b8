public import Core
internal import Glibc
public import SystemPackage

/// Immutable files named by the SHA-256 of their bytes, in 256 folders.
///
///     CACHE_VERSION               "prefetch-cache 1 sha256"
///     blobs/sha256/ab/<64 hex>    mode 0444
///     quarantine/                 bytes that failed verification
///
/// No path contains text of a URL or a header. Calls block on the disk: keep them off Swift's cooperative threads.
public struct ContentCache: Sendable {
    public static let version = "prefetch-cache 1 sha256"

    /// The cache's folder, absolute.
    public let directory: FilePath
    let blobs: FilePath
    /// The prefix of all blobs' paths.
    private let prefix: String
    let quarantine: FilePath
    let syncing: Syncing
    /// The store behind the folder, which has every blob. Nil if the folder itself has them all.
    public let backing: (any BackingStore)?
    let folderMeter = FolderMeter()

    /// Opens a cache. It creates the folder if it is missing, and the content if the folder is empty.
    ///
    /// - Parameters:
    ///   - isNew: whether the cache may be created; a command that only reads needs an existing one.
    ///   - syncs: whether files are synced before the index records them. Off only for measurements.
    ///   - backing: has all blobs; then the folder's files are not synced.
    /// - Throws: `cannotCreate`; `notACache` for a folder with other content or an unknown version.
    public init(
        directory: FilePath, isNew: Bool = true, syncs: Bool = true, backing: (any BackingStore)? = nil,
    ) throws(CacheError) {
        self.backing = backing
        syncing = Syncing(isOn: syncs && backing == nil)
        self.directory = Folders.absolute(directory)
        blobs = self.directory.appending("blobs").appending("sha256")
        prefix = blobs.string + "/"
        quarantine = self.directory.appending("quarantine")
        if !isNew, backing == nil, try Folders.smallFile(self.directory.appending("CACHE_VERSION")) == nil {
            throw CacheError(
                .cannotCreate,
                "There is no cache at \(self.directory). Name one with --cache or WORKER_CACHE, or make it with: worker init"
            )
        }
        try Folders.make(self.directory)
        try checkVersion()
        try makeFolders()
        try FrontFolder.check(self)
    }

    /// Creates missing folders inside: when the cache is opened, and when a folder was removed since.
    func makeFolders() throws(CacheError) {
        // If the marker is missing, the cache's disk is not mounted, and this folder is only the empty mount point.
        guard try hasMarker(directory.appending("CACHE_VERSION")) else {
            throw CacheError(.disk, "The cache \(directory) is gone: was its disk unmounted?")
        }
        try Folders.make(directory.appending("blobs"))
        try Folders.make(blobs)
        try Folders.make(quarantine)
        for shard in 0..<256 {
            try Folders.make(blobs.appending(String(shard < 16 ? "0" : "") + String(shard, radix: 16)))
        }
    }

    /// Opens a cache for reading only.
    ///
    /// - Throws: `notACache`; `disk` if it can't be read.
    public init(readOnly directory: FilePath) throws(CacheError) {
        backing = nil
        syncing = Syncing()
        self.directory = Folders.absolute(directory)
        blobs = self.directory.appending("blobs").appending("sha256")
        prefix = blobs.string + "/"
        quarantine = self.directory.appending("quarantine")
        guard try hasMarker(self.directory.appending("CACHE_VERSION")) else {
            throw CacheError(.notACache, "\(directory) is not a cache.")
        }
    }

    /// The cache's name, and the owning index's description of itself.
    public var identity: CacheIdentity { CacheIdentity(cache: self) }
    public var links: LinkTree { LinkTree(directory: directory) }
    /// Nil without a backing store.
    public var front: FrontFolder? { backing == nil ? nil : FrontFolder(cache: self) }

    /// For messages: the backing store's name, or the folder.
    public var name: String { backing?.name ?? directory.string }

    /// The path of a blob, whether it exists or not.
    public func path(of hash: BlobHash) -> FilePath { FilePath(name(of: hash)) }

    /// The same path as text, for system calls.
    func name(of hash: BlobHash) -> String { prefix + hash.hex.prefix(2) + "/" + hash.hex }

    /// Creates a file without a name in the cache's file system: if the process dies, the kernel removes it.
    public func makeFile() throws(CacheError) -> BlobFile {
        do {
            return BlobFile(owning: try makeDescriptor())
        } catch {
            throw CacheError(error, "No new file can be made in \(directory)")
        }
    }

    /// Like `makeFile()`, for callers that own descriptors themselves.
    public func makeDescriptor() throws(Errno) -> FileDescriptor {
        var raw = Glibc.open(blobs.string, __O_TMPFILE | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        // If the folder was removed while the worker runs, it is created again. Best effort: the second open reports
        // the error.
        if raw < 0, errno == ENOENT, (try? makeFolders()) != nil {
            raw = Glibc.open(blobs.string, __O_TMPFILE | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        }
        guard raw >= 0 else { throw Errno(rawValue: errno) }
        return FileDescriptor(rawValue: raw)
    }

    func syncDirectory(_ path: FilePath) throws(Errno) {
        let raw = try open(folder: path)
        defer { Glibc.close(raw) }
        if let reason = syncing.failure(raw) { throw reason }
    }

    func open(folder path: FilePath) throws(Errno) -> CInt {
        let raw = Glibc.open(path.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw Errno(rawValue: errno) }
        return raw
    }

    /// Bytes that this user can still write to the cache's file system.
    public func freeBytes() throws(CacheError) -> Int64 {
        var info = statvfs()
        guard statvfs(directory.string, &info) == 0 else {
            throw CacheError(Errno(rawValue: errno), "The free space of \(directory) can't be read")
        }
        return Int64(clamping: UInt64(info.f_bavail).multipliedClamping(by: UInt64(info.f_frsize)))
    }

    /// Whether a new file of 1 MiB does not fit: the disk is full, or a quota is used up. Encoders do not distinguish this from
    /// other failed writes. False if it can't be found out.
    public func isFull() -> Bool {
        let size: Int64 = 1 << 20
        // Best effort: if the free space is unknown, the new file below decides.
        if let free = try? freeBytes(), free < size { return true }
        do throws(CacheError) {
            let file = try makeFile()
            let code = withExtendedLifetime(file) { posix_fallocate(file.descriptor.rawValue, 0, off_t(size)) }
            return code == ENOSPC || code == EDQUOT
        } catch {
            return error.code == .diskFull
        }
    }

    /// The size of the cache's file system in bytes.
    public func diskBytes() throws(CacheError) -> Int64 {
        var info = statvfs()
        guard statvfs(directory.string, &info) == 0 else {
            throw CacheError(Errno(rawValue: errno), "The size of the disk of \(directory) can't be read")
        }
        return Int64(clamping: UInt64(info.f_blocks).multipliedClamping(by: UInt64(info.f_frsize)))
    }

    private func checkVersion() throws(CacheError) {
        let marker = directory.appending("CACHE_VERSION")
        if try hasMarker(marker) { return }
        guard try Folders.isEmpty(directory) else {
            // Another worker may have created the cache since the first check.
            if try hasMarker(marker) { return }
            throw CacheError(
                .notACache,
                "\(directory) is not empty and not a cache: name another folder with --cache or WORKER_CACHE.",
            )
        }
        try write(Self.version + "\n", to: marker)
    }

    /// The prefix of draft markers' names.
    static let draftPrefix = "CACHE_VERSION."

    private func hasMarker(_ path: FilePath) throws(CacheError) -> Bool {
        guard let text = try Folders.smallFile(path) else { return false }
        guard text == Self.version || text == Self.version + "\n" else {
            throw CacheError(
                .notACache,
                "\(directory) holds a cache of version '\(text.prefix(60))', and this program knows '\(Self.version)'.",
            )
        }
        return true
    }

    /// Writes a temporary file and renames it, so that two workers that start at once both see a complete marker.
    func write(_ text: String, to path: FilePath) throws(CacheError) {
        let temporary = directory.appending("\(Self.draftPrefix)\(getpid()).\(UInt32.random(in: 0 ... .max))")
        do {
            let file = try FileDescriptor.open(
                temporary, .writeOnly, options: [.create, .truncate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead],
            )
            try file.closeAfter {
                try file.writeAll(text.utf8)
                if let reason = syncing.failure(file.rawValue) { throw reason }
            }
            guard rename(temporary.string, path.string) == 0 else { throw Errno(rawValue: errno) }
            try syncDirectory(directory)
        } catch {
            throw CacheError(.cannotCreate, "The cache \(directory) can't be created: \(error).")
        }
    }
}

extension UInt64 {
    fileprivate func multipliedClamping(by other: UInt64) -> UInt64 {
        let (product, overflow) = multipliedReportingOverflow(by: other)
        return overflow ? .max : product
    }
}

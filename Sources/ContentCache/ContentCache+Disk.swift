public import Core
internal import Glibc
internal import SystemPackage

extension ContentCache {
    /// The time since a blob got its name, in milliseconds of the machine's clock; nil if it is missing.
    ///
    /// - Parameter now: UTC milliseconds.
    public func age(of hash: BlobHash, now: Int64) -> Int64? {
        var info = stat()
        guard lstat(name(of: hash), &info) == 0 else { return nil }
        return now - info.changedAt
    }

    /// The size of the file under a blob's name; nil if there is none.
    public func size(of hash: BlobHash) throws(CacheError) -> Int64? { try status(of: hash).map { Int64($0.st_size) } }

    /// What lstat(2) says of a blob's name; nil if no file has it.
    func status(of hash: BlobHash) throws(CacheError) -> stat? {
        var info = stat()
        if lstat(name(of: hash), &info) == 0 { return info }
        if errno == ENOENT { return nil }
        throw CacheError(Errno(rawValue: errno), "The blob \(hash) can't be looked up")
    }

    // MARK: - The disk

    /// Writes `bytes` to a file without a name and syncs it: if that works, a blob of that size can be written as well.
    public func probe(bytes: Int = 1 << 16) throws(CacheError) {
        let file = try makeFile()
        defer { withExtendedLifetime(file) {} }
        do {
            try file.descriptor.writeAll([UInt8](repeating: 0x5A, count: bytes))
        } catch {
            throw CacheError((error as? Errno) ?? .ioError, "Nothing can be written to \(directory)")
        }
        if let reason = syncing.failure(file.descriptor.rawValue) {
            throw CacheError(reason, "Nothing can be synced in \(directory)")
        }
        try backing?.probe()
    }
}

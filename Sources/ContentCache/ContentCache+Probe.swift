internal import Glibc
internal import SystemPackage

extension ContentCache {
    /// Writes a little to a file without a name and syncs it: what works for it works for a blob of that size.
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
    }
}

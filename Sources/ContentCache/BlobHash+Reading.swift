public import Core
internal import FoundationEssentials
internal import Glibc
internal import Hashing
internal import SystemPackage

extension BlobHash {
    /// The hash of some bytes in memory.
    public init(of bytes: some Sequence<UInt8>) {
        self.init(digest: SHA256.digest(of: Array(bytes)))
    }

    /// The first two digits: the name of the blob's folder.
    var shard: String { String(hex.prefix(2)) }

    /// Reads a whole file from its start, without moving the descriptor's offset, which other processes may share.
    static func reading(_ descriptor: FileDescriptor) throws(CacheError) -> (hash: BlobHash, size: Int64) {
        let hasher = SHA256()
        var offset: Int64 = 0
        var failure: Errno?
        withUnsafeTemporaryAllocation(byteCount: 1 << 17, alignment: 16) { buffer in
            while true {
                do {
                    let count = try descriptor.read(fromAbsoluteOffset: offset, into: buffer)
                    if count == 0 { return }
                    hasher.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    offset += Int64(count)
                } catch {
                    failure = (error as? Errno) ?? .ioError
                    return
                }
            }
        }
        if let failure { throw CacheError(failure, "A file of the cache can't be read") }
        return (BlobHash(digest: hasher.finish()), offset)
    }
}

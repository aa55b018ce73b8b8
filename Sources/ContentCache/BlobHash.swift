internal import Core
internal import Crypto
internal import FoundationEssentials
internal import Glibc
internal import SystemPackage

/// The name of a blob: the SHA-256 of its bytes, as 64 lowercase hexadecimal digits.
public struct BlobHash: Hashable, Sendable, CustomStringConvertible {
    public let hex: String

    /// - Returns: `nil` unless `hex` is 64 lowercase hexadecimal digits, so that no path is made from anything else.
    public init?(_ hex: String) {
        guard hex.utf8.count == 64, hex.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
            return nil
        }
        self.hex = hex
    }

    /// The hash of some bytes in memory.
    public init(of bytes: some Sequence<UInt8>) {
        var hasher = SHA256()
        hasher.update(data: Array(bytes))
        self.init(hasher.finalize())
    }

    private init(_ digest: SHA256.Digest) { hex = String(hexadecimal: Array(digest)) }

    /// The first two digits: the folder the blob lies in.
    var shard: String { String(hex.prefix(2)) }

    public var description: String { hex }

    /// Reads a whole file from its start, without moving the descriptor's offset, which other processes may share.
    static func reading(_ descriptor: FileDescriptor) throws(CacheError) -> (hash: BlobHash, size: Int64) {
        var hasher = SHA256()
        var offset: Int64 = 0
        var failure: Errno?
        withUnsafeTemporaryAllocation(byteCount: 1 << 17, alignment: 16) { buffer in
            while true {
                do {
                    let count = try descriptor.read(fromAbsoluteOffset: offset, into: buffer)
                    if count == 0 { return }
                    hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                    offset += Int64(count)
                } catch {
                    failure = (error as? Errno) ?? .ioError
                    return
                }
            }
        }
        if let failure { throw CacheError(failure, "A file of the cache can't be read") }
        return (BlobHash(hasher.finalize()), offset)
    }
}

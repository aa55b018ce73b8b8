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

    /// The name that a digest is written as.
    ///
    /// - Parameter digest: 32 bytes, as a hash function has made them.
    package init(digest: some Collection<UInt8>) { hex = String(hexadecimal: digest) }

    public var description: String { hex }
}

/// The name of a blob: the SHA-256 of its bytes, as 64 lowercase hexadecimal digits.
public struct BlobHash: Hashable, Sendable, CustomStringConvertible {
    public let hex: String

    /// - Returns: `nil` unless `hex` is 64 lowercase hexadecimal digits, so that no path is made from anything else.
    public init?(_ hex: String) {
        var hex = hex
        // Read in place: it is checked several times for each item.
        let isHash = hex.withUTF8 { bytes in
            bytes.count == 64 && bytes.allSatisfy { ($0 &- 48) < 10 || ($0 &- 97) < 6 }
        }
        guard isHash else { return nil }
        self.hex = hex
    }

    /// The name that a digest is written as.
    ///
    /// - Parameter digest: 32 bytes, as a hash function has made them.
    package init(digest: [UInt8]) { hex = String(hexadecimal: digest) }

    public var description: String { hex }
}

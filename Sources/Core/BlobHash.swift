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

    /// The name of the blob with this digest.
    ///
    /// - Parameter digest: the 32 bytes of a SHA-256.
    package init(digest: [UInt8]) { hex = String(hexadecimal: digest) }

    public var description: String { hex }
}

extension String {
    /// Two lowercase digits for each byte.
    ///
    /// Not generic: called from another module, a generic loop would look up a protocol witness for each byte, on the
    /// thread that runs all transfers.
    package init(hexadecimal bytes: [UInt8]) {
        let digits: StaticString = "0123456789abcdef"
        self.init(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            var end = 0
            for byte in bytes {
                text[end] = digits.utf8Start[Int(byte >> 4)]
                text[end + 1] = digits.utf8Start[Int(byte & 15)]
                end += 2
            }
            return end
        }
    }
}

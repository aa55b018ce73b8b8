internal import CCrypto

/// SHA-256 of bytes that arrive in parts, by OpenSSL.
///
/// See https://docs.openssl.org/3.0/man3/EVP_DigestInit/
public final class SHA256 {
    /// Bytes of a digest.
    public static let size = 32

    private let context: OpaquePointer

    public init() {
        // The three calls fail only if there is no memory left for a few hundred bytes, or if OpenSSL has no SHA-256.
        guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 else {
            fatalError("OpenSSL can't compute SHA-256.")
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        guard EVP_DigestUpdate(context, base, bytes.count) == 1 else { fatalError("OpenSSL can't compute SHA-256.") }
    }

    public func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes(update) }

    /// The digest of all bytes. Nothing may be added afterwards.
    public func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.size) { buffer, count in
            guard EVP_DigestFinal_ex(context, buffer.baseAddress, nil) == 1 else {
                fatalError("OpenSSL can't compute SHA-256.")
            }
            count = Self.size
        }
    }

    public static func digest(of bytes: [UInt8]) -> [UInt8] {
        let hash = SHA256()
        hash.update(bytes)
        return hash.finish()
    }

    /// The HMAC-SHA256 of a message (RFC 2104).
    public static func authenticationCode(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            guard HMAC(EVP_sha256(), key, CInt(key.count), message, message.count, buffer.baseAddress, nil) != nil
            else {
                fatalError("OpenSSL can't compute SHA-256.")
            }
            count = size
        }
    }
}

/// Whether two secrets are equal, in a time that does not depend on where they differ.
public func isEqualSecret(_ one: String, _ other: String) -> Bool {
    // Digests have the same length, whatever the lengths of the texts are.
    let (one, other) = (SHA256.digest(of: Array(one.utf8)), SHA256.digest(of: Array(other.utf8)))
    return CRYPTO_memcmp(one, other, SHA256.size) == 0
}

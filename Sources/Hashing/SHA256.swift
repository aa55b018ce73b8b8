internal import CCrypto

/// SHA-256 of bytes that arrive in parts, by OpenSSL.
///
/// See https://docs.openssl.org/3.0/man3/EVP_DigestInit/
public final class SHA256 {
    /// Bytes of a digest.
    public static let size = 32

    /// Fetched once: `EVP_sha256()` stands for an algorithm that OpenSSL would look up under a lock for each digest.
    nonisolated(unsafe) private static let algorithm: OpaquePointer = succeeded(EVP_MD_fetch(nil, "SHA256", nil))

    private let context: OpaquePointer

    public init() {
        context = succeeded(EVP_MD_CTX_new())
        succeeded(EVP_DigestInit_ex(context, Self.algorithm, nil))
    }

    deinit { EVP_MD_CTX_free(context) }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        succeeded(EVP_DigestUpdate(context, base, bytes.count))
    }

    public func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes(update) }

    /// The digest of all bytes. Nothing may be added afterwards.
    public func finish() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.size) { buffer, count in
            succeeded(EVP_DigestFinal_ex(context, buffer.baseAddress, nil))
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
            _ = succeeded(HMAC(algorithm, key, CInt(key.count), message, message.count, buffer.baseAddress, nil))
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

/// OpenSSL's calls fail only if no memory is left for a few hundred bytes, or if it was built without SHA-256: a worker can
/// do nothing about either, and must not go on without a digest.
private func succeeded(_ status: CInt) { precondition(status == 1, "OpenSSL cannot compute SHA-256") }

private func succeeded<Result>(_ result: Result?) -> Result {
    guard let result else { preconditionFailure("OpenSSL cannot compute SHA-256") }
    return result
}

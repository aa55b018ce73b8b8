internal import Core

/// A text that no description, mirror or dump shows.
struct Secret: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
    let value: String

    init(_ value: String) { self.value = value }

    var description: String { "…" }
    var customMirror: Mirror { Mirror(self, children: []) }
}

/// Keys to a bucket.
public struct Credentials: Hashable, Sendable, CustomStringConvertible {
    let keyID: String
    let secret: Secret
    /// The session token of a role that was assumed.
    let token: Secret?
    /// Nil for keys that do not expire.
    let expiresAt: WallTime?

    /// - Throws: `invalid` if a key is empty or has characters that no key has: they would end up in a header.
    public init(keyID: String, secret: String, token: String? = nil) throws(StorageError) {
        try self.init(keyID: keyID, secret: secret, token: token, expiresAt: nil)
    }

    init(keyID: String, secret: String, token: String?, expiresAt: WallTime?) throws(StorageError) {
        for (name, value) in [("access key", keyID), ("secret key", secret), ("session token", token ?? "none")]
        where value.isEmpty || !value.utf8.allSatisfy({ $0 > 32 && $0 < 127 }) {
            throw StorageError(.invalid, "The \(name) is empty, or has characters that no key has.")
        }
        self.keyID = keyID
        self.secret = Secret(secret)
        self.token = token.map(Secret.init)
        self.expiresAt = expiresAt
    }

    public var description: String { "\(keyID.prefix(4))…" }
}

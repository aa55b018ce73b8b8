internal import Core
internal import FoundationEssentials

/// A service's answer with temporary credentials.
struct FetchedCredentials {
    let id: String?
    let secret: Secret?
    let token: Secret?
    /// As the service writes it.
    let end: String?

    private struct JSON: Decodable {
        let id, secret, token, end: String?

        private enum CodingKeys: String, CodingKey {
            case id = "AccessKeyId"
            case secret = "SecretAccessKey"
            case token = "Token"
            case end = "Expiration"
        }
    }

    init(id: String?, secret: String?, token: String?, end: String?) {
        (self.id, self.end) = (id, end)
        (self.secret, self.token) = (secret.map(Secret.init), token.map(Secret.init))
    }

    /// Containers and machines answer alike.
    init(json: [UInt8]) throws(StorageError) {
        do {
            let values = try JSONDecoder().decode(JSON.self, from: Data(json))
            self.init(id: values.id, secret: values.secret, token: values.token, end: values.end)
        } catch {
            // The decoder's message may quote the answer, which holds secrets.
            throw StorageError(.denied, "The answer to the request for credentials is not valid JSON with credentials.")
        }
    }

    /// Milliseconds after which credentials with an unreadable expiry are fetched again.
    private static let unknownLife: Int64 = 600_000

    func credentials() throws(StorageError) -> Credentials {
        guard let id, let secret else {
            throw StorageError(.denied, "The answer to the request for credentials has no keys.")
        }
        let expiry = end.map { WallTime(timestamp: $0) ?? WallTime.current + Self.unknownLife }
        return try Credentials(keyID: id, secret: secret.value, token: token?.value, expiresAt: expiry)
    }
}

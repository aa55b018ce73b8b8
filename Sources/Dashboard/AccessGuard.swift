internal import FoundationEssentials
internal import HTTPTypes
internal import Hashing
internal import Hummingbird
internal import Synchronization

/// Decides which requests may read data, and which may change it.
///
/// Without a token all users of this machine may. A page of another site in their browser must not: its requests have
/// another `Host` if its name was rebound to this machine, another `Origin`, and no secret.
final class AccessGuard: Sendable {
    private struct Session {
        let secret: String
        var expiresAt: ContinuousClock.Instant
    }

    /// How long a session lasts without a request.
    static let sessionDuration: Duration = .seconds(12 * 3_600)
    /// Sessions at once; the one that expires first makes room.
    private static let maxSessions = 1_000
    /// Bytes of a session's id and of its secret.
    private static let randomBytes = 32
    /// The least length of a token.
    static let leastToken = 16
    static let cookie = "worker_session"
    static let secretHeader = "X-CSRF-Token"

    private let token: String?
    /// The secret of the one session that all users share without a token.
    private let common = AccessGuard.random()
    private let sessions = Mutex<[String: Session]>([:])

    init(token: String?) { self.token = token }

    /// - Throws: ``DashboardError`` if other machines could connect without a token, or the token is too short.
    static func check(token: String?, at address: ListenAddress) throws(DashboardError) {
        if token == nil, !address.isLoopback {
            throw DashboardError(
                "Other machines can reach \(address), so the dashboard needs a token there: write one into a file and name it "
                    + "with --dashboard-token-file, or listen at 127.0.0.1.")
        }
        if let token, token.utf8.count < Self.leastToken {
            throw DashboardError(
                "The dashboard's token must have at least \(Self.leastToken) characters. Make one with: openssl rand -hex 24"
            )
        }
    }

    var needsLogin: Bool { token != nil }

    /// Whether a request names this machine as its `Host`, and not a name that an attacker has rebound to its loopback
    /// address. Without a token the server listens at loopback addresses only.
    func isMeantForUs(_ request: Request) -> Bool {
        // With a token, a page under another name has no cookie; and a reverse proxy may pass on its own name.
        guard token == nil else { return true }
        guard let authority = request.head.authority else { return false }
        let host =
            authority.hasPrefix("[")
            ? authority.prefix { $0 != "]" }.dropFirst() : authority.prefix { $0 != ":" }
        return host == "localhost" || host == "::1"
            || host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." }
    }

    /// Whether a request comes from another site's page.
    func isForeign(_ request: Request) -> Bool {
        if let site = request.headers.text("Sec-Fetch-Site"), site != "same-origin", site != "none" { return true }
        guard let origin = request.headers[.origin] else { return false }
        return origin.split(separator: "/", omittingEmptySubsequences: true).last.map(String.init)
            != request.head.authority
    }

    // MARK: - Sessions

    /// The secret that changes have to carry; nil if the request has no session.
    func secret(of request: Request) -> String? {
        guard token != nil else { return common }
        guard let id = request.cookies[Self.cookie]?.value else { return nil }
        return sessions.withLock { sessions in
            guard var session = sessions[Self.digest(id)], session.expiresAt > .now else { return nil }
            session.expiresAt = .now + Self.sessionDuration
            sessions[Self.digest(id)] = session
            return session.secret
        }
    }

    /// Whether the request carries its session's secret.
    func mayChange(_ request: Request) -> Bool {
        guard let secret = secret(of: request), let given = request.headers.text(Self.secretHeader) else {
            return false
        }
        return isEqualSecret(secret, given)
    }

    /// Whether a program has given the token with its request, as Prometheus does.
    func hasBearerToken(_ request: Request) -> Bool {
        guard let token else { return true }
        guard let given = request.headers[.authorization], given.lowercased().hasPrefix("bearer ") else { return false }
        return isEqualSecret(token, String(given.dropFirst("bearer ".count)))
    }

    /// - Returns: the cookie's value; nil if the token is wrong.
    func logIn(_ given: String) -> String? {
        guard let token, isEqualSecret(token, given) else { return nil }
        let id = Self.random()
        sessions.withLock { sessions in
            sessions = sessions.filter { $0.value.expiresAt > .now }
            if sessions.count >= Self.maxSessions,
                let first = sessions.min(by: { $0.value.expiresAt < $1.value.expiresAt })
            {
                sessions[first.key] = nil
            }
            sessions[Self.digest(id)] = Session(secret: Self.random(), expiresAt: .now + Self.sessionDuration)
        }
        return id
    }

    func logOut(_ request: Request) {
        guard let id = request.cookies[Self.cookie]?.value else { return }
        sessions.withLock { $0[Self.digest(id)] = nil }
    }

    // MARK: - Secrets

    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()  // getrandom(2)
        return (0..<randomBytes).map { _ in
            let byte = UInt8.random(in: 0...255, using: &generator)
            return (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
    }

    /// Sessions are kept by the hash of their id, so that looking one up takes no time that depends on the id.
    private static func digest(_ id: String) -> String {
        SHA256.digest(of: Array(id.utf8)).map { String($0, radix: 16) }.joined(separator: ".")
    }
}

extension HTTPFields {
    /// The value of a header for which there is no constant.
    fileprivate func text(_ name: String) -> String? { HTTPField.Name(name).flatMap { self[$0] } }
}

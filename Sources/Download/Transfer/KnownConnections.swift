import Core
import Glibc

/// The connections that transfers have used, and the hosts that send unsolicited bytes. Used by the curl thread alone.
///
/// HTTP/1.1 does not say which request an answer belongs to: a second answer that arrives late would be taken for the
/// answer to the next request. So a connection that received bytes while it was idle is not used again, and neither is
/// any other connection to its host.
final class KnownConnections {
    /// The ends of a connection. Linux may give one local port to connections to several addresses.
    struct Ends: Hashable {
        let localPort: CInt
        let address: String
        let remotePort: CInt
    }

    /// One connection that is in use or may be used again.
    final class Connection {
        let socket: CInt
        let ends: Ends
        var users = 0
        /// HTTP/2: many requests at once, told apart by their stream numbers.
        var isMultiplexed = false
        /// The host of its requests; nil before the first.
        var host: String?

        init(socket: CInt, ends: Ends) { (self.socket, self.ends) = (socket, ends) }
    }

    private var byEnds: [Ends: Connection] = [:]
    private var byHost: [String: [Connection]] = [:]
    private var distrusted = LRUCache<String, ContinuousClock.Instant>(countLimit: 10_000)
    /// How long after its last unsolicited bytes a host is distrusted; by then its server may have been repaired.
    private static let distrustDuration = Duration.seconds(3_600)

    /// Whether each connection to the host is used only once.
    func distrusts(_ host: String, now: ContinuousClock.Instant = .now) -> Bool {
        guard let since = distrusted.peek(host) else { return false }
        if now - since < Self.distrustDuration { return true }
        distrusted.remove(host)
        return false
    }

    func distrust(_ host: String, now: ContinuousClock.Instant = .now) {
        distrusted.insert(now, for: host)
    }

    /// The connection with these ends.
    ///
    /// - Parameter opened: the sockets opened for it; empty if an earlier connection is reused.
    func connection(_ ends: Ends, opened: [CInt]) -> Connection? {
        if let socket = opened.first(where: { Self.localPort(of: $0) == ends.localPort }) {
            if byEnds.count > 8_192 {
                byEnds = byEnds.filter { $0.value.users > 0 }
                byHost = byHost.mapValues { $0.filter { $0.users > 0 } }.filter { !$0.value.isEmpty }
            }
            let made = Connection(socket: socket, ends: ends)
            byEnds[ends] = made
            return made
        }
        return byEnds[ends].flatMap { isOpen($0) ? $0 : nil }
    }

    /// Whether the socket is still this connection's.
    private func isOpen(_ connection: Connection) -> Bool {
        byEnds[connection.ends] === connection && Self.localPort(of: connection.socket) == connection.ends.localPort
    }

    /// Notes that a connection is used for a host.
    func use(_ connection: Connection, for host: String) {
        connection.users += 1
        guard connection.host == nil else { return }
        connection.host = host
        byHost[host, default: []].append(connection)
    }

    /// Checks a host's idle connections for unsolicited bytes. It must run before libcurl uses them: libcurl 8 reads
    /// such bytes and closes the connection, so ``unsolicited(on:isSecure:)`` would find nothing.
    func lookAtIdle(of host: String, isSecure: Bool) {
        guard let open = byHost[host]?.filter(isOpen) else { return }
        byHost[host] = open.isEmpty ? nil : open
        for connection in open {
            if case .bytes = unsolicited(on: connection, isSecure: isSecure) { distrust(host) }
        }
    }

    /// The bytes that arrived on an idle connection.
    enum Unasked {
        /// None, or only the connection's end, which libcurl notices too.
        case nothing
        /// The end of the session, or TLS's own records. The connection is not used again, and the host is not
        /// distrusted.
        case other
        /// Bytes that the next request would take for its answer.
        case bytes
    }

    /// - Parameter isSecure: whether the connection uses TLS. The records are encrypted, and a session ticket, which
    ///   may come at any time, looks like a short answer. So the bytes count only if they are more than a
    ///   session ticket has.
    func unsolicited(on connection: Connection, isSecure: Bool) -> Unasked {
        guard connection.users == 0, !connection.isMultiplexed else { return .nothing }
        var byte: UInt8 = 0
        guard recv(connection.socket, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) > 0 else { return .nothing }
        if Self.hasEnded(connection.socket) { return .other }
        return isSecure && !Self.hasMuch(connection.socket) ? .other : .bytes
    }

    /// The most bytes that TLS sends for itself while a connection is open.
    private static let longestOwnRecords = 8 << 10

    private static func hasMuch(_ socket: CInt) -> Bool {
        var bytes = [UInt8](repeating: 0, count: longestOwnRecords + 1)
        let count = recv(socket, &bytes, bytes.count, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT))
        // TLS 1.2 marks records that are not application data (RFC 8446, section 5.1).
        return count == bytes.count && bytes[0] == 23
    }

    private static func hasEnded(_ socket: CInt) -> Bool {
        // POLLRDHUP, which Glibc's module does not export.
        let farewell: Int16 = 0x2000
        var entry = pollfd(fd: socket, events: farewell, revents: 0)
        return poll(&entry, 1, 0) > 0 && entry.revents & (farewell | Int16(POLLHUP) | Int16(POLLERR)) != 0
    }

    private static func localPort(of socket: CInt) -> CInt? {
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        guard code == 0 else { return nil }
        return withUnsafeBytes(of: &address) { bytes in
            switch CInt(bytes.load(as: sa_family_t.self)) {
            case AF_INET: CInt(UInt16(bigEndian: bytes.load(as: sockaddr_in.self).sin_port))
            case AF_INET6: CInt(UInt16(bigEndian: bytes.load(as: sockaddr_in6.self).sin6_port))
            default: nil
            }
        }
    }
}

import Glibc

/// The connections that transfers have used, and hosts that send what nobody asked for. Used by the curl thread alone.
///
/// HTTP/1.1 has nothing that tells whose answer one is: a second answer that comes late on a connection would be taken for
/// that of the next request. So a connection on which anything has come while nobody used it isn't used again, and neither
/// is any other of its host.
final class KnownConnections {
    /// One connection, as long as somebody uses it or may again.
    final class Connection {
        let socket: CInt
        let remotePort: CInt
        var users = 0
        /// Many requests at once: what comes is told apart by its number.
        var isMultiplexed = false

        init(socket: CInt, remotePort: CInt) { (self.socket, self.remotePort) = (socket, remotePort) }
    }

    private var byPort: [CInt: Connection] = [:]
    private var distrusted: Set<String> = []

    /// Whether a host's connections are used once only.
    func distrusts(_ host: String) -> Bool { distrusted.contains(host) }

    func distrust(_ host: String) {
        if distrusted.count >= 10_000 { distrusted.removeAll() }
        distrusted.insert(host)
    }

    /// The connection between two ports.
    ///
    /// - Parameter opened: sockets that were opened for it; none where an earlier connection is used again.
    func connection(localPort: CInt, remotePort: CInt, opened: [CInt]) -> Connection? {
        if let socket = opened.first(where: { Self.localPort(of: $0) == localPort }) {
            if byPort.count > 8_192 { byPort = byPort.filter { $0.value.users > 0 } }
            let made = Connection(socket: socket, remotePort: remotePort)
            byPort[localPort] = made
            return made
        }
        guard let known = byPort[localPort], known.remotePort == remotePort,
            Self.localPort(of: known.socket) == localPort
        else { return nil }
        return known
    }

    /// Whether something has come on a connection that nobody uses. Its end is no surprise.
    func hasUnaskedBytes(_ connection: Connection) -> Bool {
        guard connection.users == 0, !connection.isMultiplexed else { return false }
        var byte: UInt8 = 0
        return recv(connection.socket, &byte, 1, CInt(MSG_PEEK) | CInt(MSG_DONTWAIT)) > 0
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

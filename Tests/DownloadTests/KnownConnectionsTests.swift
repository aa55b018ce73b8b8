import Core
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Download

/// The hosts whose connections are reused.
@Suite(.timeLimit(.minutes(15))) struct KnownConnectionsTests {
    @Test func aHostIsDistrustedForAnHour() {
        let (connections, now) = (KnownConnections(), ContinuousClock.now)
        connections.distrust("a.example", now: now)
        #expect(!connections.distrusts("b.example", now: now))
        #expect(connections.distrusts("a.example", now: now + .seconds(3_599)))
        connections.distrust("a.example", now: now + .seconds(3_599))
        #expect(connections.distrusts("a.example", now: now + .seconds(7_198)))
        #expect(!connections.distrusts("a.example", now: now + .seconds(7_199)))
        #expect(!connections.distrusts("a.example", now: now))
    }

    /// Linux gives one local port to connections to two addresses.
    @Test func twoConnectionsWithOneLocalPortAreDistinguished() throws {
        let (first, second) = (try LoopbackListener(), try LoopbackListener())
        let toFirst = try first.connect(fromPort: 0)
        let toSecond = try second.connect(fromPort: toFirst.localPort)
        let known = KnownConnections()
        let ends = [(first, toFirst), (second, toSecond)].map { listener, connection in
            KnownConnections.Ends(
                localPort: connection.localPort, address: "127.0.0.1", remotePort: listener.port)
        }
        let a = try #require(known.connection(ends[0], opened: [toFirst.socket]))
        let b = try #require(known.connection(ends[1], opened: [toSecond.socket]))
        #expect(known.connection(ends[0], opened: []) === a)
        #expect(known.connection(ends[1], opened: []) === b)

        try first.sendByte()
        #expect(poll(toFirst.socket))
        guard case .bytes = known.unsolicited(on: a, isSecure: false) else {
            Issue.record("The late byte on the first connection was not seen.")
            return
        }
        guard case .nothing = known.unsolicited(on: b, isSecure: false) else {
            Issue.record("The late byte was taken for the second connection's.")
            return
        }
    }

    private func poll(_ socket: CInt) -> Bool {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&entry, 1, 10_000) == 1
    }

    /// TLS sends an alert before it closes, and may send tickets until then. A short record may be a ticket; a longer
    /// response is recognised.
    @Test(
        .enabled(if: SecureOrigin.isAvailable, "python3-h2 or openssl is missing: run scripts/bootstrap"),
        arguments: [
            ("/farewell", true), ("/last", true), ("/ticket", true), ("/late", true), ("/late-large", false),
        ])
    func aHostThatClosesAnIdleConnectionKeepsItsNextConnections(_ path: String, _ isTrusted: Bool) async throws {
        try await withTemporaryDirectory { folder in
            let origin = try SecureOrigin(scratch: folder)
            defer { origin.stop() }
            try await withDownloader(configure: { $0.caFile = origin.caFile.string }) { downloader in
                let first = await downloader.download(DownloadRequest(url: origin.url(.good, path)))
                #expect(first.file?.size == 1_000)
                try await Task.sleep(for: .milliseconds(500))
                var handshakes: [Duration] = []
                for _ in 0..<3 {
                    let outcome = await downloader.download(DownloadRequest(url: origin.url(.good)))
                    #expect(outcome.file?.size == 1_000)
                    handshakes += outcome.response.map { [$0.timings.tls] } ?? []
                }
                #expect(handshakes.first ?? .zero > .zero)
                #expect((handshakes.last == .zero) == isTrusted)
            }
        }
    }
}

/// Accepts one connection on 127.0.0.1.
private final class LoopbackListener {
    private let listening: CInt
    private var accepted: CInt = -1
    private var clients: [CInt] = []
    let port: CInt

    init() throws {
        listening = try Self.socket(boundTo: 0)
        guard listen(listening, 4) == 0 else { throw Errno(rawValue: errno) }
        port = Self.port(of: listening)
    }

    /// - Parameter fromPort: the local port; 0 for a free one.
    func connect(fromPort: CInt) throws -> (socket: CInt, localPort: CInt) {
        let client = try Self.socket(boundTo: fromPort)
        clients.append(client)
        var address = Self.address(port)
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
        accepted = accept(listening, nil, nil)
        return (client, Self.port(of: client))
    }

    func sendByte() throws {
        guard send(accepted, "x", 1, CInt(MSG_NOSIGNAL)) == 1 else { throw Errno(rawValue: errno) }
    }

    deinit { for socket in clients + [accepted, listening] where socket >= 0 { close(socket) } }

    private static func address(_ port: CInt) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        return address
    }

    private static func socket(boundTo port: CInt) throws -> CInt {
        let made = Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        var (yes, address) = (CInt(1), address(port))
        setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<CInt>.size))
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(made, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else { throw Errno(rawValue: errno) }
        return made
    }

    private static func port(of socket: CInt) -> CInt {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        return CInt(UInt16(bigEndian: address.sin_port))
    }
}

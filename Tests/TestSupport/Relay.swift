import Glibc
import Synchronization
import SystemPackage

/// Passes the connections to a port of 127.0.0.1 on to another port, until it is cut: then it resets them, and every new
/// one. While it is held, it passes no bytes on.
public final class Relay: Sendable {
    public let port: UInt16
    private let listener: LoopbackSocket
    private let target: UInt16
    private let state = Mutex((isCut: false, isHeld: false, held: 0, open: Set<Int32>()))

    public init(to target: UInt16) throws {
        self.target = target
        listener = try LoopbackSocket.listening()
        port = listener.port
        LoopbackThread.start { [self] in
            while let client = listener.accept() { serve(client.descriptor) }
            close(listener.descriptor)
        }
    }

    public func cut() {
        state.withLock { state in
            state.isCut = true
            for socket in state.open { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    public func mend() { state.withLock { $0.isCut = false } }

    public func hold() { state.withLock { $0.isHeld = true } }

    /// How many pieces have arrived while it was held.
    public var heldPieces: Int { state.withLock { $0.held } }

    private func waitWhileHeld() {
        state.withLock { if $0.isHeld { $0.held += 1 } }
        while state.withLock({ $0.isHeld && !$0.isCut }) { usleep(10_000) }
    }

    public func stop() {
        cut()
        shutdown(listener.descriptor, Int32(SHUT_RDWR))
    }

    private func serve(_ client: Int32) {
        let server = connected()
        let isOpen = state.withLock { state in
            guard !state.isCut, server >= 0 else { return false }
            state.open.formUnion([client, server])
            return true
        }
        guard isOpen else {
            LoopbackSocket(descriptor: client, port: port).resetOnClose()
            close(client)
            if server >= 0 { close(server) }
            return
        }
        let end = EndOfPair(self, client, server)
        for (from, to) in [(client, server), (server, client)] {
            LoopbackThread.start {
                self.pass(from, to)
                end.done()
            }
        }
    }

    fileprivate func forget(_ sockets: [Int32]) {
        state.withLock { $0.open.subtract(sockets) }
        for socket in sockets { close(socket) }
    }

    private func connected() -> Int32 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = target.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard code == 0 else {
            close(socket)
            return -1
        }
        return socket
    }

    private func pass(_ from: Int32, _ to: Int32) {
        let source = LoopbackSocket(descriptor: from, port: 0)
        let target = LoopbackSocket(descriptor: to, port: 0)
        while let bytes = source.receive() {
            waitWhileHeld()
            guard target.send(bytes) else { break }
        }
        shutdown(to, Int32(SHUT_RDWR))
        shutdown(from, Int32(SHUT_RDWR))
    }
}

/// Closes both sockets once both directions have ended.
private final class EndOfPair: Sendable {
    private let left = Mutex(2)
    private let relay: Relay
    private let sockets: [Int32]

    init(_ relay: Relay, _ sockets: Int32...) {
        self.relay = relay
        self.sockets = sockets
    }

    func done() {
        let isLast = left.withLock { left in
            left -= 1
            return left == 0
        }
        if isLast { relay.forget(sockets) }
    }
}

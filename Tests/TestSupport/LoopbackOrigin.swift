import Glibc
import Synchronization

/// A real HTTP/1.1 server on 127.0.0.1 that answers as it is told to, faults included, and remembers what it was asked.
///
///     let origin = try LoopbackOrigin { _ in .ok(image, type: "image/png") }
///     let url = origin.url("/a.png")
public final class LoopbackOrigin: Sendable {
    public let port: UInt16
    private let listener: LoopbackSocket
    private let record: LoopbackRecord

    public struct Request: Sendable {
        public let method: String
        /// With the query, as it was sent.
        public let path: String
        public let headers: [(name: String, value: String)]
        public let body: [UInt8]

        /// The first header of that name, whatever its case.
        public func header(_ name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    /// Called for each request, on the connection's thread.
    public init(address: String = "127.0.0.1", _ handler: @escaping @Sendable (Request) -> LoopbackReply) throws {
        let listener = try LoopbackSocket.listening(on: address)
        let record = LoopbackRecord()
        self.listener = listener
        self.record = record
        port = listener.port
        LoopbackThread.start {
            while let socket = listener.accept() {
                // A full house shows as a closed connection, as it would anywhere.
                guard record.opened(socket) else { continue }
                LoopbackThread.start {
                    LoopbackConnection(socket: socket, record: record, handler: handler).serve()
                    record.closed(socket)
                }
            }
            listener.close()
        }
    }

    /// Answers each path's requests with its replies in turn; the last one repeats, and other paths are a 404.
    public convenience init(script: [String: [LoopbackReply]]) throws {
        let turns = LoopbackTurns(script)
        try self.init { turns.next($0.path) }
    }

    deinit { stop() }

    public func url(_ path: String, scheme: String = "http") -> String { "\(scheme)://127.0.0.1:\(port)\(path)" }

    /// In the order they were read.
    public var requests: [Request] { record.requests }

    public func requestCount(_ path: String) -> Int { requests.count { $0.path == path } }

    public var connectionCount: Int { record.connectionCount }

    /// Connections that neither side has ended, as far as this side has noticed.
    public var openConnections: Int { record.openConnections }

    /// The most requests that were in flight at once.
    public var maxSimultaneous: Int { maxSimultaneous(under: "") }

    public func maxSimultaneous(under prefix: String) -> Int { record.maxSimultaneous(under: prefix) }

    /// Closes everything. Further calls do nothing.
    public func stop() {
        listener.shutDown()
        record.shutDown()
    }

    /// A port on which no program listens at the moment.
    public static func unusedPort() throws -> UInt16 {
        let socket = try LoopbackSocket.listening()
        defer { socket.close() }
        return socket.port
    }
}

/// The replies of a script that have not been given yet.
private final class LoopbackTurns: Sendable {
    private let left: Mutex<[String: [LoopbackReply]]>

    init(_ script: [String: [LoopbackReply]]) {
        left = Mutex(script)
    }

    func next(_ path: String) -> LoopbackReply {
        left.withLock { left in
            guard let replies = left[path], let reply = replies.first else { return .status(404) }
            if replies.count > 1 { left[path]?.removeFirst() }
            return reply
        }
    }
}

/// What an origin has seen.
final class LoopbackRecord: Sendable {
    private static let maxConnections = 512
    private let state = Mutex(State())

    private struct State {
        var requests: [LoopbackOrigin.Request] = []
        /// +1 and −1 for each path, in order: enough to tell any prefix's maximum afterwards.
        var events: [(path: String, change: Int)] = []
        var open: [Int32: LoopbackSocket] = [:]
        var connectionCount = 0
        var isStopped = false
    }

    var requests: [LoopbackOrigin.Request] { state.withLock { $0.requests } }
    var connectionCount: Int { state.withLock { $0.connectionCount } }
    var openConnections: Int { state.withLock { $0.open.count } }

    func opened(_ socket: LoopbackSocket) -> Bool {
        let isWelcome = state.withLock { state in
            guard !state.isStopped, state.open.count < Self.maxConnections else { return false }
            state.connectionCount += 1
            state.open[socket.descriptor] = socket
            return true
        }
        if !isWelcome { socket.close() }
        return isWelcome
    }

    func closed(_ socket: LoopbackSocket) {
        // Closed under the lock, so that stopping never touches a descriptor that means something else by then.
        state.withLock { state in
            state.open[socket.descriptor] = nil
            socket.close()
        }
    }

    func began(_ request: LoopbackOrigin.Request) {
        state.withLock {
            $0.requests.append(request)
            $0.events.append((request.path, 1))
        }
    }

    func ended(_ request: LoopbackOrigin.Request) {
        state.withLock { $0.events.append((request.path, -1)) }
    }

    func maxSimultaneous(under prefix: String) -> Int {
        var now = 0
        var most = 0
        for event in state.withLock({ $0.events }) where event.path.hasPrefix(prefix) {
            now += event.change
            most = max(most, now)
        }
        return most
    }

    func shutDown() {
        state.withLock { state in
            state.isStopped = true
            for socket in state.open.values { socket.shutDown() }
        }
    }
}

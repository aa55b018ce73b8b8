internal import CPostgres
internal import Dispatch
internal import Synchronization

/// Tells when a program changes the queue in PostgreSQL, by LISTEN: triggers notify at each change of a job or an item.
///
/// There is a connection only while a worker waits for a change.
///
/// https://www.postgresql.org/docs/15/sql-notify.html
public final class QueueChanges: Sendable {
    private struct State {
        var listener: Listener?
        var isConnecting = false
        var onChange: (@Sendable () -> Void)?
    }

    private let url: String
    private let queue = DispatchQueue(label: "jobs.changes")
    private let state = Mutex(State())

    /// - Returns: nil for a SQLite database.
    public init?(database: String) {
        guard PostgresURL.isPostgres(database) else { return nil }
        url = database
    }

    deinit { state.withLock { $0.listener }?.close() }

    /// - Parameter onChange: called once, after the next change or the loss of the connection.
    /// - Returns: whether changes are noticed. If not, it connects, and a later call may succeed.
    public func begin(_ onChange: @escaping @Sendable () -> Void) -> Bool {
        let (isReady, connects) = state.withLock { state in
            guard state.listener == nil else {
                state.onChange = onChange
                return (true, false)
            }
            defer { state.isConnecting = true }
            return (false, !state.isConnecting)
        }
        if connects { queue.async { [weak self] in self?.connect() } }
        return isReady
    }

    private func connect() {
        // Best effort: without a connection the caller goes on polling.
        let listener = try? Listener(url: url, queue: queue) { [weak self] in self?.tell() }
        state.withLock { state in
            state.isConnecting = false
            state.listener = listener
        }
    }

    private func tell() {
        let (listener, onChange) = state.withLock { state in
            defer { state = State() }
            return (state.listener, state.onChange)
        }
        listener?.close()
        onChange?()
    }
}

/// A connection that listens.
private final class Listener: Sendable {
    /// Dispatch's sources may be used by several threads.
    nonisolated(unsafe) private let source: any DispatchSourceRead

    /// - Parameter onChange: called on the queue.
    init(url: String, queue: DispatchQueue, onChange: @escaping @Sendable () -> Void) throws {
        let connection = try PostgresConnection(url: url)
        try connection.script("SET client_min_messages = 'warning'; SET idle_session_timeout = 0")
        let table = try connection.script("SELECT to_regclass('jobs')::OID").integer(0, 0)
        try connection.script("LISTEN \(PostgresSchema.channel)\(table)")
        source = DispatchSource.makeReadSource(fileDescriptor: connection.socket, queue: queue)
        source.setEventHandler { if connection.takeNotifications() { onChange() } }
        // It owns the connection, which is closed after the source.
        source.setCancelHandler { withExtendedLifetime(connection) {} }
        source.resume()
    }

    func close() { source.cancel() }
}

extension PostgresConnection {
    /// To wait for notifications.
    fileprivate var socket: CInt { library.socket(raw) }

    /// Reads what the server has sent without being asked.
    ///
    /// - Returns: whether there was a notification, or the connection is lost.
    fileprivate func takeNotifications() -> Bool {
        guard library.consumeInput(raw) == 1 else { return true }
        var isNotified = false
        while let notification = library.notifies(raw) {
            library.freemem(notification)
            isNotified = true
        }
        return isNotified || library.status(raw) != CONNECTION_OK
    }
}

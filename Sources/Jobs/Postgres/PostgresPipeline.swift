internal import CPostgres
internal import Synchronization

/// A statement with its values, ready to be sent.
struct PostgresCall {
    enum Statement {
        case prepared(name: String)
        case text(String)
    }

    let statement: Statement
    /// The texts of the values, each ended by a zero, as libpq reads them.
    fileprivate let bytes: [UInt8]
    /// Where each value begins; nil for null.
    fileprivate let starts: [Int?]

    init(text: String) {
        statement = .text(text)
        bytes = []
        starts = []
    }

    init(_ name: String, _ bytes: [UInt8], _ starts: [Int?]) {
        statement = .prepared(name: name)
        self.bytes = bytes
        self.starts = starts
    }

    init(_ name: String, _ values: [SQLValue]) {
        var bytes: [UInt8] = []
        var starts: [Int?] = []
        for value in values {
            guard let text = value.postgresText else {
                starts.append(nil)
                continue
            }
            starts.append(bytes.count)
            bytes.append(contentsOf: text.utf8.lazy.map { $0 == 0 ? PostgresConnection.replacement : $0 })
            bytes.append(0)
        }
        self.init(name, bytes, starts)
    }
}

/// How often a program has waited for an answer of the server.
final class RoundTrips: Sendable {
    let count = Atomic(0)

    func note() { count.add(1, ordering: .relaxed) }
}

/// The statements that a connection sends together, in one round trip.
///
/// If one fails, the server skips those behind it. See https://www.postgresql.org/docs/15/libpq-pipeline-mode.html
struct PostgresPipeline {
    private let raw: OpaquePointer
    private let library: CPostgresLibrary
    private let trips: RoundTrips?
    private var waiting: [PostgresCall] = []
    private var size = 0
    /// Whether a statement was sent since `forget`.
    private(set) var hasSent = false
    /// Whether the last statement was sent without reading its answer.
    private var isUnread = false

    /// The most bytes of values that wait. A group of items has a tenth of it.
    private static let longest = 1 << 20

    init(_ raw: OpaquePointer, _ library: CPostgresLibrary, _ trips: RoundTrips?) {
        self.raw = raw
        self.library = library
        self.trips = trips
    }

    var isEmpty: Bool { waiting.isEmpty }

    var isLong: Bool { size >= Self.longest }

    mutating func add(_ call: PostgresCall) {
        waiting.append(call)
        size += call.bytes.count
    }

    /// Drops the statements that wait.
    mutating func forget() {
        waiting = []
        size = 0
        hasSent = false
    }

    /// Sends the statements that wait, and `last`.
    ///
    /// - Returns: the answer of the last statement, or of the first that failed; nil if the connection is lost.
    mutating func send(_ last: PostgresCall?) -> OpaquePointer? {
        settle()
        guard start(waiting + (last.map { [$0] } ?? [])) else { return nil }
        trips?.note()
        return answer()
    }

    /// Sends a statement without reading its answer, which is read before the next one is sent. No others may wait.
    ///
    /// - Returns: false if the connection is lost.
    mutating func sendUnread(_ call: PostgresCall) -> Bool {
        settle()
        guard start([call]), library.flush(raw) >= 0 else { return false }
        isUnread = true
        hasSent = false
        return true
    }

    /// Reads the answer that was left. If it is an error of the connection, the next statement meets it again.
    mutating func settle() {
        guard isUnread else { return }
        isUnread = false
        library.clear(answer())
    }

    private mutating func start(_ calls: [PostgresCall]) -> Bool {
        waiting = []
        size = 0
        hasSent = true
        guard library.enterPipelineMode(raw) == 1 else { return false }
        for call in calls {
            let isSent = call.bytes.withUnsafeBytes { buffer in
                let base = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
                let values: [UnsafePointer<CChar>?] = call.starts.map { start in
                    start.flatMap { base?.advanced(by: $0) }
                }
                return switch call.statement {
                case .prepared(let name): library.sendQueryPrepared(raw, name, CInt(values.count), values, nil, nil, 0)
                case .text(let sql): library.sendQueryParams(raw, sql, CInt(values.count), nil, values, nil, nil, 0)
                }
            }
            guard isSent == 1 else { return false }
        }
        return library.pipelineSync(raw) == 1
    }

    /// Reads the answers up to the end of the pipeline.
    private func answer() -> OpaquePointer? {
        var kept: OpaquePointer?
        var hasFailed = false
        // Each statement's answer is followed by null; a second null in a row comes from a lost connection.
        var wasNull = false
        while library.status(raw) == CONNECTION_OK {
            guard let result = library.getResult(raw) else {
                if wasNull { break }
                wasNull = true
                continue
            }
            wasNull = false
            let status = library.resultStatus(result)
            guard status != PGRES_PIPELINE_SYNC else {
                library.clear(result)
                break
            }
            guard !hasFailed else {
                library.clear(result)
                continue
            }
            library.clear(kept)
            kept = result
            hasFailed = status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY
        }
        _ = library.exitPipelineMode(raw)
        return kept
    }
}

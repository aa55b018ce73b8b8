internal import CPostgres
internal import Core

/// A connection to PostgreSQL. It is used by one thread at a time; all calls block.
///
/// A statement is written as for SQLite. ``PostgresDialect`` translates it, once for each text, and the server keeps
/// its plan under a name.
final class PostgresConnection: @unchecked Sendable {
    let library: CPostgresLibrary
    let raw: OpaquePointer
    private var prepared: [String: String] = [:]
    /// The forms of statements for many rows, with the names of these; nil for a statement without such a form.
    private var batches: [String: (form: PostgresBatch, name: String)?] = [:]
    private var lastChanges = 0
    private var pipeline: PostgresPipeline
    private let trips: RoundTrips?
    /// The recorded clock of the cache, as it was read last; see ``CacheClock``.
    var clock: String??
    /// How many statements may still run; nil for any number.
    private var statementsLeft: Int?

    /// A worker has fewer different statements. A program that exceeds this number drops them all and prepares again.
    private static let mostPrepared = 2_000

    /// - Parameter url: as libpq reads it, `postgres://user:password@host:port/database?options`.
    /// - Throws: `PostgresError`; a `JobsError` if the library is not installed.
    init(url: String, counting trips: RoundTrips? = nil) throws {
        library = try LibPQ.loaded()
        guard let raw = library.connectdb(PostgresURL.withDefaults(url)) else {
            throw PostgresError(state: "08001", message: "no memory for a connection", constraint: nil)
        }
        self.raw = raw
        pipeline = PostgresPipeline(raw, library, trips)
        self.trips = trips
        guard library.status(raw) == CONNECTION_OK else {
            let message = PostgresURL.hidingPassword(of: url, in: Self.message(library.errorMessage(raw)))
            library.finish(raw)
            isOpen = false
            throw PostgresError(state: Self.state(of: message), message: message, constraint: nil)
        }
        _ = library.setNoticeProcessor(raw, cpostgres_ignore_notice, nil)
    }

    private var isOpen = true

    deinit { if isOpen { library.finish(raw) } }

    /// Whether a statement of the transaction has failed, so that it can only be rolled back.
    var hasFailed: Bool { library.transactionStatus(raw) == PQTRANS_INERROR }

    /// Such as 150018.
    var serverVersion: Int { Int(library.serverVersion(raw)) }

    /// libpq gives no SQLSTATE when it can't connect, so this reads its message: the server's sentence follows `FATAL:`,
    /// and a message that names no server is about the URL.
    private static func state(of message: String) -> String {
        if let fatal = message.firstRange(of: "FATAL:") {
            let sentence = message[fatal.upperBound...]
            if sentence.contains("does not exist") { return "3D000" }
            return ["authentication", "pg_hba", "permitted"].contains { sentence.contains($0) } ? "28000" : "08001"
        }
        if message.contains("fe_sendauth") { return "28000" }
        let isAboutServer = ["connection to server", "could not translate host name"].contains { message.contains($0) }
        return isAboutServer ? "08001" : "3D000"
    }

    /// The message in one line, without libpq's hints, which are indented, and without the full stop that sentences
    /// around it add.
    private static func message(_ text: UnsafePointer<CChar>?) -> String {
        let lines = text.map { String(cString: $0) } ?? "no message"
        let line = lines.split(separator: "\n").filter { !$0.hasPrefix("\t") }.joined(separator: " ")
        return String(line.last == "." ? line.dropLast() : line[...])
    }

    // MARK: - Statements

    /// Runs statements in PostgreSQL's own dialect, without parameters.
    @discardableResult
    func script(_ sql: String) throws(PostgresError) -> PostgresResult {
        try flush()
        pipeline.settle()
        trips?.note()
        return try check(library.exec(raw, sql))
    }

    /// Runs one statement that is written as for SQLite.
    func run(_ sql: String, _ values: [SQLValue]) throws(PostgresError) -> PostgresResult {
        try execute(try name(of: sql), values)
    }

    /// Runs `body`, in which a second statement is an error: outside a transaction it would read another snapshot.
    func onlyOne<R>(_ body: () throws -> R) rethrows -> R {
        statementsLeft = 1
        defer { statementsLeft = nil }
        return try body()
    }

    /// Drops all prepared statements if there are very many. Call it between transactions: a running transaction still
    /// uses their names.
    func trimStatements() throws(PostgresError) {
        guard prepared.count >= Self.mostPrepared else { return }
        try script("DEALLOCATE ALL")
        prepared = [:]
        batches = [:]
    }

    /// Prepares a statement, unless it is prepared already.
    ///
    /// - Returns: its name.
    func name(of sql: String) throws(PostgresError) -> String {
        if let known = prepared[sql] { return known }
        return try prepare(PostgresDialect.translated(sql), for: sql)
    }

    private func prepare(_ translated: String, for sql: String) throws(PostgresError) -> String {
        let name = "s\(prepared.count)"
        pipeline.settle()
        trips?.note()
        do {
            try check(library.prepare(raw, name, translated, 0, nil))
        } catch {
            // Only a statement with a mistake can't be prepared.
            throw PostgresError(
                state: error.state, message: "\(error.message), in \(translated)", constraint: error.constraint)
        }
        prepared[sql] = name
        return name
    }

    // MARK: - Round trips

    /// Runs a prepared statement, together with those that wait.
    func execute(_ name: String, _ values: [SQLValue]) throws(PostgresError) -> PostgresResult {
        try answer(PostgresCall(name, values))
    }

    /// Runs a prepared statement without waiting for its answer. It is sent with the next statement whose answer is
    /// needed, and its error is thrown there.
    func post(_ name: String, _ values: [SQLValue]) throws(PostgresError) { try post(PostgresCall(name, values)) }

    /// Sends the statements that wait, if there are any.
    func flush() throws(PostgresError) {
        guard !pipeline.isEmpty else { return }
        lastChanges = try check(pipeline.send(nil)).changes
    }

    /// The number of rows that the last statement changed.
    func changesCount() throws(PostgresError) -> Int {
        try flush()
        return lastChanges
    }

    private func post(_ call: PostgresCall) throws(PostgresError) {
        guard statementsLeft == nil else {
            _ = try answer(call)
            return
        }
        pipeline.add(call)
        if pipeline.isLong { try flush() }
    }

    private func answer(_ call: PostgresCall) throws(PostgresError) -> PostgresResult {
        if let left = statementsLeft {
            guard left > 0 else {
                throw PostgresError(
                    state: "25P01", message: "a second statement outside a transaction", constraint: nil)
            }
            statementsLeft = left - 1
        }
        let result = try check(pipeline.send(call))
        lastChanges = result.changes
        return result
    }

    /// Begins a transaction together with its first statement.
    func beginReading() { pipeline.add(PostgresCall(text: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")) }

    /// Ends a transaction that has only read, without waiting for the answer.
    func endReading() throws(PostgresError) {
        guard pipeline.hasSent else { return pipeline.forget() }
        try flush()
        guard pipeline.sendUnread(PostgresCall(text: "COMMIT")) else { throw lost() }
    }

    /// Commits, in one round trip with the statements that wait.
    func commit() throws(PostgresError) { try check(pipeline.send(PostgresCall(text: "COMMIT"))) }

    /// Rolls back; statements that wait are never sent.
    func rollBack() throws(PostgresError) {
        pipeline.forget()
        try script("ROLLBACK")
    }

    /// PostgreSQL stores no zeros in text; SQLite does.
    static let replacement = UInt8(ascii: "?")

    // MARK: - Many rows of values

    /// The form of a statement that runs it for many rows of values; nil if it has none.
    func batch(of sql: String) throws(PostgresError) -> PostgresBatch? {
        if let known = batches[sql] { return known?.form }
        let types = try types(ofParameters: try name(of: sql))
        let form = types.flatMap {
            PostgresBatch(PostgresDialect.rewritten(PostgresDialect.tokens(of: sql)), types: $0)
        }
        guard let form else {
            batches[sql] = .some(nil)
            return nil
        }
        batches[sql] = (form, try prepare(form.sql, for: form.sql))
        return form
    }

    /// Runs the batch of a statement, together with the statements that wait.
    ///
    /// - Parameter rows: their values; at least one row.
    func executeBatch(of sql: String, _ rows: [[SQLValue]]) throws(PostgresError) -> PostgresResult {
        try answer(try call(batchOf: sql, rows))
    }

    /// Runs the batch of a statement without waiting for its answer.
    func postBatch(of sql: String, _ rows: [[SQLValue]]) throws(PostgresError) {
        try post(try call(batchOf: sql, rows))
    }

    private func call(batchOf sql: String, _ rows: [[SQLValue]]) throws(PostgresError) -> PostgresCall {
        guard let name = batches[sql]??.name else {
            throw PostgresError(state: "XX000", message: "a statement has no batch", constraint: nil)
        }
        var arrays = PostgresArrays(columns: rows[0].count)
        for row in rows { arrays.add(row) }
        let (bytes, starts) = arrays.close()
        return PostgresCall(name, bytes, starts)
    }

    /// - Returns: nil if one has a type of which no array is made.
    private func types(ofParameters name: String) throws(PostgresError) -> [String]? {
        pipeline.settle()
        trips?.note()
        let result = library.describePrepared(raw, name)
        // The result of the check owns this one, and frees it.
        let checked = try check(result)
        defer { withExtendedLifetime(checked) {} }
        var names: [String] = []
        for index in 0..<library.nparams(result) {
            guard let name = PostgresBatch.name(ofType: library.paramtype(result, index)) else { return nil }
            names.append(name)
        }
        return names
    }

    @discardableResult
    private func check(_ result: OpaquePointer?) throws(PostgresError) -> PostgresResult {
        guard let result else { throw lost() }
        let status = library.resultStatus(result)
        if status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY {
            return PostgresResult(result, library)
        }
        defer { library.clear(result) }
        // PG_DIAG_SQLSTATE, PG_DIAG_MESSAGE_PRIMARY and PG_DIAG_CONSTRAINT_NAME
        func field(_ code: Character) -> String? {
            library.resultErrorField(result, CInt(code.asciiValue ?? 0)).map { String(cString: $0) }
        }
        guard library.status(raw) == CONNECTION_OK, let state = field("C") else { throw lost() }
        throw PostgresError(
            state: state, message: field("M") ?? "no message",
            constraint: field("n").map(PostgresSchema.sentence(of:)))
    }

    private func lost() -> PostgresError {
        PostgresError(state: "08006", message: Self.message(library.errorMessage(raw)), constraint: nil)
    }
}

/// PostgreSQL's client library. It is loaded when a database of PostgreSQL is opened for the first time.
struct LibPQ: @unchecked Sendable {
    /// Pointers to functions, which are never changed after they are loaded.
    private let functions: CPostgresLibrary

    /// - Throws: `cannotOpen` if the library is not installed.
    static func loaded() throws(JobsError) -> CPostgresLibrary { try once.get().functions }

    private static let once: Result<LibPQ, JobsError> = {
        var functions = CPostgresLibrary()
        guard let missing = cpostgres_load(&functions) else { return .success(LibPQ(functions: functions)) }
        return .failure(
            JobsError(
                .cannotOpen,
                "PostgreSQL's client library is not installed (\(String(cString: missing)) is missing). Install it with: "
                    + "apt-get install libpq5"))
    }()
}

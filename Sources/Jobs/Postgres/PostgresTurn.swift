/// The turn to write: a lock that each transaction takes that changes something, since one program writes at a time.
enum PostgresTurn {
    /// A commit that need not be durable does not wait for the log; see
    /// https://www.postgresql.org/docs/15/wal-async-commit.html
    static func begin(isDurable: Bool) -> String {
        isDurable
            ? "BEGIN ISOLATION LEVEL READ COMMITTED"
            : "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off"
    }

    private static let lock = "'jobs'::REGCLASS::OID::BIGINT"

    /// Takes the lock of writers, and asks for the transaction's number: after a lost answer it tells whether the
    /// transaction was committed.
    static let takeIfFree =
        "; SELECT CASE WHEN pg_try_advisory_xact_lock(\(lock)) THEN pg_current_xact_id()::TEXT END"

    /// The same, but the server lets it wait in line for so many milliseconds.
    static func take(waiting limit: Int64) -> String {
        """
        ; SET LOCAL lock_timeout = \(limit); SELECT pg_advisory_xact_lock(\(lock)); SET LOCAL lock_timeout = 0;
        SELECT pg_current_xact_id()::TEXT
        """
    }

    /// How long the server lets a transaction wait in line, in milliseconds, before the worker looks whether it is to
    /// stop.
    static let longest: Int64 = 250

    /// - Returns: the transaction's number; nil if another program has the turn.
    static func begun(_ begin: String, on connection: PostgresConnection) throws -> String? {
        do {
            return try connection.script(begin).text(0, 0)
        } catch let error where error.isLockTimeout {
            return nil
        }
    }
}

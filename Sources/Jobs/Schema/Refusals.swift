internal import GRDB

/// Refuses mistakes of SQL users, with a sentence that says what is right.
extension Schema {
    static let refusals = """
        -- Only this program knows the function, and the statement fails in any other: what these tables hold is true only
        -- within a transaction of a worker, or as long as a program adds a list.
        \(PrivateTables.triggers)
        CREATE TRIGGER jobs_refuse_state BEFORE UPDATE OF state ON jobs WHEN NOT (\(isState("NEW.state", JobState.self))) BEGIN
            SELECT RAISE(ABORT, 'the states of a job are \(JobState.allCases.map(\.rawValue).joined(separator: ", ")), in lower case');
        END;
        CREATE TRIGGER blacklist_refuse_insert INSTEAD OF INSERT ON blacklist BEGIN
            SELECT RAISE(ABORT, 'a URL is listed when it fails for good; to list one by hand, insert it into blacklist_entries, as docs/reference/sql.md shows');
        END;
        CREATE TRIGGER limits_refuse_url BEFORE INSERT ON limits WHEN \(isNoHost) BEGIN
            SELECT RAISE(ABORT, 'a host is a name without scheme, port and path, as in images.example.com; or * for all');
        END;
        CREATE TRIGGER limits_refuse_url_update BEFORE UPDATE OF host ON limits WHEN \(isNoHost) BEGIN
            SELECT RAISE(ABORT, 'a host is a name without scheme, port and path, as in images.example.com; or * for all');
        END;
        """

    static func isState<State: CaseIterable & RawRepresentable>(_ column: String, _ states: State.Type) -> String
    where State.RawValue == String {
        states.allCases.map { "\(column) = '\($0.rawValue)'" }.joined(separator: " OR ")
    }

    /// An address of IPv6 has several colons.
    private static let isNoHost =
        "(NEW.host GLOB '*[/ @]*' OR length(NEW.host) - length(replace(NEW.host, ':', '')) = 1)"
}

/// Tables to which only this program adds rows. A row of a shell could make the triggers count wrong.
enum PrivateTables {
    /// A function of SQL whose name is the message that a shell gets: "no such function: …".
    static let function = "only_the_worker_writes_to_this_table"

    private static let inserted = ["moving", "job_additions", "recounts", "reservations", "workers", "leases"]
    private static let updated = [("recounts", ""), ("reservations", ""), ("workers", " OF id"), ("leases", " OF id")]

    static let triggers =
        (inserted.map { trigger("\($0)_refuse", "INSERT ON \($0)") }
        + updated.map { trigger("\($0)_refuse_update", "UPDATE\($1) ON \($0)") }).joined(separator: "\n")

    private static func trigger(_ name: String, _ event: String) -> String {
        """
        CREATE TRIGGER \(name) BEFORE \(event) WHEN NOT \(function)() BEGIN
            SELECT RAISE(ABORT, 'only the worker writes to this table');
        END;
        """
    }

    /// Lets a connection write to these tables.
    static func open(in db: Database) {
        db.add(function: DatabaseFunction(function, argumentCount: 0, pure: true) { _ in true })
    }
}

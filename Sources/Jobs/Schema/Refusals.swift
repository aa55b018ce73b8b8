/// Refuses what SQL users write by mistake, with a sentence that says what would be right.
extension Schema {
    static let refusals = """
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

/// Migration 9: the waits that hosts have asked for go by the clock that doesn't jump, too.
extension Schema {
    /// Where the machine's clock was set once, nobody knows by which of the two an older version meant them. Hosts ask again.
    static let steadyHosts = """
        DELETE FROM hosts WHERE EXISTS (SELECT 1 FROM cache_properties WHERE name = 'clock'
            AND iif(json_valid(value), ifnull(json_extract(value, '$.shift'), 0) <> 0, 1));
        """
}

internal import GRDB

/// The schema as a sequence of named migrations. A released migration is never edited; a change is a new migration.
///
/// The triggers and defaults also run in the SQLite of the user's shell, so they need at most version 3.34 and no
/// functions of this program.
///
/// Conditions of tables and triggers on `items` are written `x = 'a' OR x = 'b' OR x = 'c'`: for `x IN (…)` with three
/// or more values, SQLite builds a temporary table for each statement and each run of a trigger. That took a fifth of
/// the cost of a download.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration(first) { db in
            for part in parts {
                try db.execute(sql: part)
            }
        }
        return migrator
    }

    static let first = "1-schema"

    /// The largest id that a statement may give an item.
    static let largestItemID: Int64 = 1 << 52
    /// The largest id that a statement may give a job, so that enough ids are left after it. Each new id is larger by
    /// one, so no database reaches this id by itself.
    static let largestJobID: Int64 = 1 << 51

    static let parts = [
        jobTables, CacheSchema.tables, hostTables, jobTriggers, ItemSchema.triggers, ItemSchema.checks, views,
        CacheSchema.nearDuplicates, eventTables, ScheduleSchema.tables, ActivitySchema.tables, recipeTables,
        noticeTables,
        refusals,
    ]

    /// The names of all triggers that this program makes.
    static let ownTriggers = Set(parts.joined().matches(of: /CREATE TRIGGER (\w+)/).map { String($0.output.1) })

    /// Refuses a database with migrations that this version does not know.
    ///
    /// - Throws: `tooNew` if they follow this version's migrations; `tooOld` if the database does not begin with this
    ///   version's first migration.
    static func refuseUnknown(_ applied: Set<String>, path: String) throws(JobsError) {
        guard let unknown = applied.subtracting(migrator.migrations).min() else { return }
        let step = unknown.prefix(80)
        guard applied.contains(first) else {
            throw JobsError(
                .tooOld,
                """
                The database \(path) has the schema of a development version ('\(step)'), which this version cannot \
                upgrade. Move it away and make a new one with: worker init --db \(path)
                """)
        }
        throw JobsError(
            .tooNew,
            "The database \(path) was made by a newer version of worker, which has a step '\(step)'. Use that version.")
    }

    // MARK: - Parts of statements

    /// The current time in UTC milliseconds.
    static let now = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

    /// A check that refuses the statement with a sentence for the user.
    static func refuse(_ message: String, when condition: String) -> String {
        "SELECT RAISE(ABORT, '\(message.replacing("'", with: "''"))') WHERE \(condition);"
    }

    /// The check of the headers of jobs and items.
    static let headersCheck = refuse(
        "headers must be a JSON object of strings, as in '{\"Referer\":\"https://example.com/\"}'",
        when: isNoJSON("headers", type: "object", orElse: elementsAreNoText("headers")))

    /// The condition that a column is set and is no JSON of this type. It is a single `CASE`, so that JSON functions
    /// never get text that is no JSON.
    static func isNoJSON(_ column: String, type: String, orElse condition: String = "FALSE") -> String {
        """
        NEW.\(column) IS NOT NULL AND CASE WHEN json_valid(NEW.\(column))
            THEN json_type(NEW.\(column)) <> '\(type)' OR \(condition) ELSE TRUE END
        """
    }

    /// A column as JSON in one line; NULL for invalid JSON, which a program that switches triggers off may write.
    static func json(_ column: String) -> String { "CASE WHEN json_valid(\(column)) THEN json(\(column)) END" }

    static func elementsAreNoText(_ column: String) -> String {
        "EXISTS (SELECT 1 FROM json_each(NEW.\(column)) WHERE type <> 'text')"
    }

    /// A column of UTC milliseconds as ISO text.
    static func iso(_ column: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')"
    }

    /// Converts a column of the cache's clock to the machine's clock, as users see it. It uses the difference of both
    /// clocks that a worker last recorded.
    static func isoOfSteady(_ column: String) -> String {
        iso(
            """
            (\(column) + coalesce((SELECT CAST(json_extract(value, '$.shift') AS INTEGER) FROM cache_properties \
            WHERE name = 'clock' AND json_valid(value)), 0))
            """)
    }

    /// Converts a time of the machine's clock to the cache's clock, which does not jump.
    ///
    /// SQL knows neither the kernel's uptime nor how the machine's clock has moved since workers last recorded the
    /// cache's clock; running workers record it within a second of a jump. So SQL applies the rule that the cache's
    /// clock applies across boots: a step back, or forward by more than 400 days, does not count.
    static func steady(_ time: String) -> String {
        """
        (SELECT CASE WHEN shift IS NULL OR wall IS NULL THEN \(time)
            WHEN \(time) < wall OR \(time) - wall > \(CacheClock.longestAbsence) THEN wall - shift
            ELSE \(time) - shift END
            FROM (SELECT CAST(json_extract(clock, '$.wall') AS INTEGER) AS wall,
                    CAST(json_extract(clock, '$.shift') AS INTEGER) AS shift
                FROM (SELECT (SELECT CASE WHEN json_valid(value) THEN value END FROM cache_properties
                    WHERE name = 'clock') AS clock) AS recorded) AS shifted)
        """
    }

    /// The condition that `state` is a case of the enumeration, so that the CHECK always matches the Swift type.
    static func isOneOf<S: CaseIterable & RawRepresentable>(_: S.Type) -> String where S.RawValue == String {
        S.allCases.map { "state = '\($0.rawValue)'" }.joined(separator: " OR ")
    }

    /// The illegal moves, as a condition on OLD.state and NEW.state.
    static func isIllegalMove<S>(_: S.Type, _ canMove: (S, S) -> Bool) -> String
    where S: CaseIterable & RawRepresentable & Equatable, S.RawValue == String {
        let cases = S.allCases.map { from in
            let legal = S.allCases.filter { from != $0 && canMove(from, $0) }.map { "NEW.state = '\($0.rawValue)'" }
            return "WHEN '\(from.rawValue)' THEN \(legal.isEmpty ? "FALSE" : legal.joined(separator: " OR "))"
        }
        return "OLD.state <> NEW.state AND NOT CASE OLD.state \(cases.joined(separator: " ")) ELSE FALSE END"
    }

    /// The sum of a column of numbers that are not negative. SQLite's own `sum` fails when it overflows, and any
    /// program may have written any number.
    static func sum(_ column: String) -> String { "CAST(min(max(total(\(column)), 0), 1e15) AS INTEGER)" }

    /// The condition that an update changes one of these columns.
    static func changesAny(of columns: [String]) -> String {
        columns.map { "NEW.\($0) IS NOT OLD.\($0)" }.joined(separator: " OR ")
    }

    /// The condition that a job is queued, running or paused. `row` names the row in an UPDATE or a query.
    static func isOpen(_ row: String = "") -> String {
        "(\(row)state = 'queued' OR \(row)state = 'running' OR \(row)state = 'paused')"
    }

    /// The cache property that says whether links are kept.
    static let linksProperty = "links"

    /// The condition that jobs are not all paused.
    static let nothingIsSuspended = "NOT EXISTS (SELECT 1 FROM suspension)"

    /// Ends a job without open items.
    static func finishJob(_ id: String) -> String {
        """
        UPDATE jobs SET state = 'finished', finished_at = \(now)
                WHERE id = \(id) AND queued = 0 AND active = 0 AND delayed = 0 AND \(isOpen());
        """
    }
}

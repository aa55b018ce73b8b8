internal import GRDB

/// The schema, as a row of named migrations. One that was released is never edited; a change is a new one.
///
/// The triggers and defaults run in whatever SQLite the user's shell has, so they use nothing newer than 3.34 and no
/// functions of ours.
enum Schema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1-queue-and-cache-index") { db in
            try db.execute(sql: tables)
            try db.execute(sql: jobTriggers)
            try db.execute(sql: itemTriggers)
            try db.execute(sql: views)
        }
        migrator.registerMigration("2-source-facts") { db in
            try db.execute(sql: sourceFacts)
        }
        migrator.registerMigration("3-cache-eviction") { db in
            try db.execute(sql: cacheEviction)
        }
        migrator.registerMigration("4-download-engine") { db in
            try db.execute(sql: downloads)
        }
        migrator.registerMigration("5-result-facts") { db in
            try db.execute(sql: resultFacts)
        }
        migrator.registerMigration("6-key-uses") { db in
            try db.execute(sql: keyUses)
        }
        migrator.registerMigration("7-group-counters") { db in
            try db.execute(sql: groupCounters)
        }
        migrator.registerMigration("8-steady-time") { db in
            try db.execute(sql: steadyTime)
        }
        migrator.registerMigration("9-steady-hosts") { db in
            try db.execute(sql: steadyHosts)
        }
        migrator.registerMigration("10-plain-checks") { db in
            try db.execute(sql: plainChecks)
        }
        migrator.registerMigration("11-lost-files") { db in
            try db.execute(sql: lostFiles)
        }
        migrator.registerMigration("12-cache-keys") { db in
            try db.execute(sql: cacheKeys)
        }
        migrator.registerMigration("13-quarantine") { db in
            try db.execute(sql: quarantine)
        }
        migrator.registerMigration("14-guarded-queue") { db in
            try db.execute(sql: guardedQueue)
        }
        migrator.registerMigration("15-host-reach") { db in
            try db.execute(sql: hostReach)
        }
        migrator.registerMigration("16-damage") { db in
            try db.execute(sql: damage)
        }
        migrator.registerMigration("17-ends") { db in
            try db.execute(sql: ends)
        }
        return migrator
    }

    /// Now, in UTC milliseconds.
    static let now = "CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"

    /// A column of UTC milliseconds as ISO text.
    static func iso(_ column: String) -> String {
        "strftime('%Y-%m-%dT%H:%M:%fZ', \(column) / 1000.0, 'unixepoch')"
    }

    /// `'a', 'b'` for an enumeration, so that its CHECK can't drift from the Swift type.
    static func list<S: CaseIterable & RawRepresentable>(_: S.Type) -> String where S.RawValue == String {
        S.allCases.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    }

    /// The moves that are not legal, as a condition on OLD.state and NEW.state.
    static func illegalMove<S>(_: S.Type, _ canMove: (S, S) -> Bool) -> String
    where S: CaseIterable & RawRepresentable & Equatable, S.RawValue == String {
        let legal = S.allCases.flatMap { from in
            S.allCases.filter { from != $0 && canMove(from, $0) }.map { "'\(from.rawValue)>\($0.rawValue)'" }
        }
        return "OLD.state <> NEW.state AND (OLD.state || '>' || NEW.state) NOT IN (\(legal.joined(separator: ", ")))"
    }
}

import GRDB
import Testing

@testable import Jobs

/// The statements that are run for every item.
@Suite("Row statements", .timeLimit(.minutes(1)), .onSQLite)
struct RowStatementTests {
    private func withDatabase(_ body: (Connection) throws -> Void) throws {
        let database = try DatabaseQueue()
        try database.write { db in
            try db.execute(sql: "CREATE TABLE kept (id INTEGER PRIMARY KEY, value, CONSTRAINT small CHECK (id < 1000))")
            try body(Connection(db))
        }
    }

    @Test(
        "Texts are read as they were stored",
        arguments: [
            "", "a", "fifteen bytes..", "sixteen bytes...", "http://example.com/ä?ö=ü", "日本\u{0}語", "👩‍👩‍👧‍👧",
            String(repeating: "long ", count: 100),
        ])
    func texts(text: String) throws {
        try withDatabase { db in
            let insert = try RowStatement("INSERT INTO kept (id, value) VALUES (?, ?)", in: db)
            try insert.run(1, text)
            try insert.run(2, String?.some(text))
            let select = try RowStatement("SELECT value, typeof(value) FROM kept ORDER BY id", in: db)
            let rows = try select.all { [$0.text(0), $0.text(1)] }
            #expect(rows == [[text, "text"], [text, "text"]])
            // All of it is there for other programs, too.
            let count = try db.int("SELECT length(CAST(value AS BLOB)) FROM kept WHERE id = 1")
            #expect(count == text.utf8.count)
        }
    }

    @Test("Numbers are read as they were stored", arguments: [0, 1, -1, 255, Int64.max, .min])
    func numbers(number: Int64) throws {
        try withDatabase { db in
            try RowStatement("INSERT INTO kept (id, value) VALUES (1, ?)", in: db).run(number)
            let select = try RowStatement("SELECT value, typeof(value) FROM kept", in: db)
            #expect(try select.first { $0.integer(0) } == number)
            #expect(try select.first { $0.number(0) as Int64? } == number)
            #expect(try select.first { $0.text(1) } == "integer")
        }
    }

    @Test("A stored null is read as nil, and false is not")
    func nulls() throws {
        try withDatabase { db in
            let insert = try RowStatement("INSERT INTO kept (id, value) VALUES (?, ?)", in: db)
            try insert.run(1, String?.none)
            try insert.run(2, Int64?.none)
            try insert.run(3, false)
            let select = try RowStatement("SELECT value FROM kept ORDER BY id", in: db)
            #expect(try select.all { $0.flag(0) } == [nil, nil, false])
            #expect(try select.all { $0.number(0) as Int? } == [nil, nil, 0])
            #expect(try select.all { $0.text(0) } == [nil, nil, "0"])
        }
    }

    @Test("A number out of range is read as the nearest in range, and a text as 0")
    func misfits() throws {
        try withDatabase { db in
            try db.script("INSERT INTO kept (id, value) VALUES (1, 300), (2, 'seven'), (3, -300)")
            let select = try RowStatement("SELECT value FROM kept ORDER BY id", in: db)
            #expect(try select.all { $0.number(0) as Int8? } == [127, 0, -128])
        }
    }

    @Test("A failed statement throws the reason, and can be run again")
    func failures() throws {
        try withDatabase { db in
            let insert = try RowStatement("INSERT INTO kept (id, value) VALUES (?, ?)", in: db)
            let error = #expect(throws: DatabaseError.self) { try insert.run(1_000, "a") }
            #expect(error?.resultCode == .SQLITE_CONSTRAINT)
            #expect(error?.extendedResultCode == .SQLITE_CONSTRAINT_CHECK)
            #expect(error?.message == "CHECK constraint failed: small")
            try insert.run(1, "a")
            #expect(try db.changesCount() == 1)
            #expect(throws: DatabaseError.self) { try insert.run(1, "again") }
            #expect(try db.texts("SELECT value FROM kept") == ["a"])
        }
    }

    @Test("An error that is thrown while a row is read leaves the statement usable")
    func interrupted() throws {
        struct Enough: Error {}
        try withDatabase { db in
            try db.script("INSERT INTO kept (id) VALUES (1), (2), (3)")
            let select = try RowStatement("SELECT id FROM kept ORDER BY id", in: db)
            #expect(throws: Enough.self) { try select.all { _ in throw Enough() } as [Int64] }
            // One that still stood at a row would keep the table from being dropped.
            try db.script("DELETE FROM kept WHERE id = 1")
            #expect(try select.first { $0.integer(0) } == 2)
            #expect(try select.all { $0.integer(0) } == [2, 3])
            try db.script("DROP TABLE kept")
        }
    }
}

import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

/// What a person with a `sqlite3` or `psql` shell does to the database, through the real one.
struct Shell: Sendable {
    static let isThere = access("/usr/bin/sqlite3", X_OK) == 0
    static let missing: Comment = "this machine has no /usr/bin/sqlite3"

    struct Answer: Hashable, Sendable {
        let output: String
        let errors: String

        /// The sentence a person reads, without what the shell puts around it.
        var complaint: String {
            var text = errors.split(separator: "\n").first.map(String.init) ?? ""
            if let start = text.firstRange(of: "ERROR:  ") ?? text.firstRange(of: ": ") {
                text = String(text[start.upperBound...])
            }
            if text.hasSuffix(" (19)") { text.removeLast(5) }
            return text
        }

        var lines: [String] { output.split(separator: "\n").map(String.init) }
    }

    /// The path of a file, or the URL of a PostgreSQL database.
    let database: String

    /// Runs statements until the first that fails. Waits for locks as a patient person would.
    func run(_ sql: String) throws -> Answer {
        try withTemporaryDirectory { folder in
            let input = folder.appending("in.sql")
            let file = try FileDescriptor.open(
                input, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
            let isSQLite = !PostgresURL.isPostgres(database)
            _ = try file.closeAfter { try file.writeAll("\(isSQLite ? ".timeout 20000\n" : "")\(sql)\n".utf8) }
            let output = folder.appending("out"), errors = folder.appending("err")
            let shell =
                isSQLite
                ? "/usr/bin/sqlite3 -batch -bail \"$1\"" : "/usr/bin/psql -qXAt -v ON_ERROR_STOP=1 -d \"$1\""
            let script = "exec \(shell) <\"$2\" >\"$3\" 2>\"$4\""
            _ = try ChildProcess.run(
                "sh", ["-c", script, "sh", database, input.string, output.string, errors.string])
            return Answer(output: try Self.text(of: output), errors: try Self.text(of: errors))
        }
    }

    /// The output of statements that are expected to work.
    @discardableResult
    func expect(_ sql: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> [String] {
        let answer = try run(sql)
        #expect(answer.errors == "", sourceLocation: sourceLocation)
        return answer.lines
    }

    /// Everything the queue's tables hold, to see that nothing changed.
    func dump() throws -> String { try run("SELECT * FROM jobs; SELECT * FROM items;").output }

    private static func text(of path: FilePath) throws -> String {
        let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
        return try file.closeAfter {
            var all: [UInt8] = []
            while true {
                let part = try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                    count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
                }
                if part.isEmpty { return String(decoding: all, as: UTF8.self) }
                all += part
            }
        }
    }
}

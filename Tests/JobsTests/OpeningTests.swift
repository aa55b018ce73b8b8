import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@Suite("Opening a database", .timeLimit(.minutes(15)), .onSQLite)
struct OpeningTests {
    private func write(_ text: String, to path: FilePath) throws {
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
        _ = try file.closeAfter { try file.writeAll(text.utf8) }
    }

    private func error(_ path: FilePath, missing: DatabaseGate.Missing = .create) -> JobsError? {
        #expect(throws: JobsError.self) { _ = try JobStore(path: path.string, missing: missing) }
    }

    @Test func `A missing database that must exist is refused with advice, and not made`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db")
            let error = error(path, missing: .refuse)
            #expect(error?.code == .cannotOpen)
            #expect(
                error?.message
                    == "There is no database at \(path). Name one with --db or WORKER_DB, or make it with: worker init")
            #expect(access(path.string, F_OK) != 0)
            #expect(access("\(path).lock", F_OK) != 0)
        }
    }

    @Test func `A file that is no database is refused and left alone`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db")
            let text = String(repeating: "This is not a database. ", count: 100)
            try write(text, to: path)
            let error = error(path)
            #expect(error?.code == .corrupt)
            #expect(
                error?.message.hasPrefix("The database \(path) is damaged or not a database: file is not a database. ")
                    == true)
            #expect(error?.message.contains("worker db rebuild") == true)
            var info = stat()
            #expect(stat(path.string, &info) == 0 && Int(info.st_size) == text.utf8.count)
        }
    }

    @Test(.enabled(if: Shell.isThere, Shell.missing))
    func `A database of a newer version is refused`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db")
            try await JobStore(path: path.string).close()
            try Shell(database: path.string).expect("INSERT INTO grdb_migrations VALUES ('2099-flying-images');")
            let error = error(path)
            #expect(error?.code == .tooNew)
            #expect(
                error?.message
                    == """
                    The database \(path) was made by a newer version of worker, which has a step '2099-flying-images'. \
                    Use that version.
                    """)
        }
    }

    @Test func `A database in a missing folder can't be opened`() throws {
        try withTemporaryDirectory { folder in
            #expect(error(folder.appending("nowhere").appending("worker.db"))?.code == .cannotOpen)
        }
    }

    @Test(.enabled(if: access("/proc/self", F_OK) == 0, "this system has no /proc"))
    func `A database in a read-only folder can't be opened`() throws {
        // Not even root makes files here.
        #expect(error("/proc/self/worker.db")?.code == .cannotOpen)
    }

    @Test func `A folder at the path of the database can't be opened`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("worker.db")
            #expect(mkdir(path.string, 0o755) == 0)
            #expect(error(path)?.code == .cannotOpen)
        }
    }

    @Test func `A database that is opened again has its jobs`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let first = try JobStore(path: path)
            let job = try #require(try await first.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg"])))
            try await first.close()
            let second = try JobStore(path: path, missing: .refuse)
            #expect(try await second.reports.progress(job: job)?.total == 1)
            try await second.close()
        }
    }

    @Test(arguments: 0..<20) func `Several stores can open a new database at once`(round: Int) async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker\(round).db").string
            try await withThrowingTaskGroup { group in
                for _ in 0..<6 {
                    group.addTask {
                        let store = try JobStore(path: path)
                        _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/a.jpg"]))
                        try await store.close()
                    }
                }
                try await group.waitForAll()
            }
            let store = try JobStore(path: path)
            #expect(try await store.reports.backlog().queued == 6)
            try await store.close()
        }
    }

    @Test func `A call to a closed store fails and doesn't crash`() async throws {
        try await withTemporaryDirectory { folder in
            let store = try JobStore(path: folder.appending("worker.db").string)
            try await store.close()
            await #expect(throws: JobsError.self) { _ = try await store.reports.backlog() }
        }
    }
}

import Jobs
import Testing

@Suite("Moves between states, by SQL", .timeLimit(.minutes(15)), .enabled(if: Shell.isThere, Shell.missing))
struct SQLMoveTests {
    static let itemPairs = ItemState.allCases.flatMap { from in
        ItemState.allCases.filter { $0 != from }.map { (from: from, to: $0) }
    }
    static let jobPairs = JobState.allCases.flatMap { from in
        JobState.allCases.filter { $0 != from }.map { (from: from, to: $0) }
    }

    /// Columns that a state needs beside itself.
    private static func columns(_ state: ItemState) -> String {
        """
        state = '\(state.rawValue)', lease = \(state == .active ? "1" : "NULL"),
        run_at = \(state == .delayed ? "1" : "NULL"), finished_at = \(state.isTerminal ? "1" : "NULL"),
        class = \(state == .failed ? "'dns'" : "NULL"), message = 'm'
        """
    }

    private static func way(to state: ItemState) -> [ItemState] {
        switch state {
        case .queued: []
        case .active, .cancelled: [state]
        case .delayed, .done, .failed: [.active, state]
        }
    }

    private static func way(to state: JobState) -> [JobState] { state == .queued ? [] : [state] }

    @Test func `An item can make the moves of canMove and no other`() async throws {
        try await withQueue { queue in
            try queue.shell.expect(
                """
                \(Queue.isOnPostgres ? "SET worker.session = 'on';" : ".dbconfig enable_trigger off")
                INSERT INTO leases (id, worker, claimed_at, expires_at) VALUES (1, \(queue.worker), 1, 1);
                """)
            for (from, to) in Self.itemPairs {
                try queue.shell.expect("INSERT INTO jobs (id, urls) VALUES (1, json_array('https://a.example/1.jpg'));")
                let id = try queue.shell.expect("SELECT max(id) FROM items;")[0]
                let way = Self.way(to: from).map { "UPDATE items SET \(Self.columns($0)) WHERE id = \(id);" }
                try queue.shell.expect(way.joined())
                let answer = try queue.shell.run("UPDATE items SET \(Self.columns(to)) WHERE id = \(id);")
                let complaint =
                    "an item can't move between these states; docs/reference/sql.md shows the moves it can make"
                #expect(answer.complaint == (from.canMove(to: to) ? "" : complaint), "\(from) to \(to)")
                let now = try queue.shell.expect("SELECT state FROM items WHERE id = \(id);")
                #expect(now == [from.canMove(to: to) ? to.rawValue : from.rawValue], "\(from) to \(to)")
                try queue.shell.expect("DELETE FROM jobs;")
            }
        }
    }

    @Test func `A job can make the moves of canMove and no other`() async throws {
        try await withQueue { queue in
            for (from, to) in Self.jobPairs {
                let way = Self.way(to: from).map { "UPDATE jobs SET state = '\($0.rawValue)';" }
                try queue.shell.expect("INSERT INTO jobs (id) VALUES (1);" + way.joined())
                let answer = try queue.shell.run("UPDATE jobs SET state = '\(to.rawValue)';")
                let complaint =
                    "a job can't move between these states; docs/reference/sql.md shows the moves it can make"
                #expect(answer.complaint == (from.canMove(to: to) ? "" : complaint), "\(from) to \(to)")
                let now = try queue.shell.expect("SELECT state FROM jobs;")
                #expect(now == [from.canMove(to: to) ? to.rawValue : from.rawValue], "\(from) to \(to)")
                try queue.shell.expect("DELETE FROM jobs;")
            }
        }
    }

    @Test func `A job with open items can't be set to finished`() async throws {
        try await withQueue { queue in
            _ = try await queue.job(2)
            let answer = try queue.shell.run("UPDATE jobs SET state = 'finished';")
            #expect(answer.complaint == "a finished job has nothing left to do; cancel the job, or its items")
        }
    }

    @Test func `An unknown state is refused`() async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            for table in ["jobs", "items"] {
                #expect(try queue.shell.run("UPDATE \(table) SET state = 'dancing';").errors != "")
            }
            #expect(try await queue.progress(job).queued == 1)
        }
    }
}

import Glibc
import SystemPackage
import TestSupport
import Testing

/// The database, the cache or the system under a worker is changed, missing, closed to it, or locked by others.
@Suite(.timeLimit(.minutes(15))) struct OddMachineTests {
    @Test(arguments: [false, true])
    func `A database that is deleted or replaced ends its worker with 74`(_ isReplaced: Bool) async throws {
        try await withWorker { w in
            try await w.run("init")
            let child = try await w.startRegistered()
            let away = w.place("away.db")
            try #require(rename(w.database, away) == 0)
            if isReplaced { try await w.run("init") }
            #expect(try await child.wait(atMost: .seconds(15)) == .code(74))
            #expect(try w.errors(of: child).contains("was deleted or replaced while it was in use"))
            for end in ["", "-wal", "-shm"] { unlink(w.database + end) }
            try await w.run("init")
        }
    }

    @Test func `A worker whose log is replaced by another program leaves the database whole`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<20).map { w.url("/\($0).png") })
            let child = try w.start()
            try await w.untilEnded("1")
            for end in ["-wal", "-shm"] { unlink(w.database + end) }
            _ = try await w.run(
                ["-batch", w.database, "UPDATE jobs SET name = 'other'"], program: "sqlite3", expecting: nil)
            #expect(try await child.wait(atMost: .seconds(15)) == .code(74))
            #expect(try w.errors(of: child).contains("-wal was deleted or replaced"))
            #expect(try await w.value("PRAGMA integrity_check") == "ok")
            // What was in the deleted log is lost, and the files of the cache are taken over.
            let rebuilt = try await w.run("db", "rebuild", "--adopt", "--yes", expecting: nil)
            #expect([.code(0), .code(74)].contains(rebuilt.exit), "\(rebuilt)")
            let home = FilePath(w.database).removingLastComponent()
            for name in fileNames(in: home.string) where name.contains(".broken-") {
                unlink(home.appending(name).string)
            }
        }
    }

    @Test func `A worker whose log is deleted copies it into the database, and ends with 74`() async throws {
        try await withWorker { w in
            try await w.enqueue((0..<20).map { w.url("/\($0).png") })
            let child = try w.start()
            try await w.untilEnded("1")
            unlink(w.database + "-wal")
            #expect(try await child.wait(atMost: .seconds(15)) == .code(74))
            let said = try w.errors(of: child)
            #expect(said.contains("-wal was deleted or replaced") && said.contains("Nothing is lost"), "\(said)")
            #expect(try await w.counts("1") == "20|0|0|0|0")
        }
    }

    /// A second worker that opens a new lock file must not take the first for dead.
    @Test func `A worker whose lock file is deleted keeps its items`() async throws {
        let gate = Gate()
        try await withWorker({ request in
            gate.wait()
            return Pictures.reply(request)
        }) { w in
            try await w.enqueue((0..<6).map { w.url("/\($0).png") })
            let first = try w.start("--drain")
            try await w.eventually("its downloads run") { w.origin.requests.count == 6 }
            unlink(w.database + ".lock")
            try await w.eventually("it has made the file again") { access(w.database + ".lock", F_OK) == 0 }
            let second = try w.start("--drain")
            try await w.eventually("the second has begun") {
                try await w.value("SELECT count(*) FROM workers") == "2"
            }
            try await Task.sleep(for: .seconds(2))
            #expect(try await w.value("SELECT count(*) FROM items WHERE state = 'active'") == "6")
            gate.open()
            #expect(try await first.wait() == .code(0))
            #expect(try await second.wait() == .code(0))
            #expect(try await w.counts("1") == "6|0|0|0|0")
            #expect(w.origin.requests.count == 6)
            #expect(try await w.value("SELECT count(*) FROM items WHERE deaths > 0") == "0")
        }
    }

    @Test func `A program that keeps all others out is told of within seconds`() async throws {
        try await withWorker { w in
            try await w.run("init")
            try await w.enqueue(w.url("/1.png"))
            let shell = try await w.shell(holding: "PRAGMA locking_mode = EXCLUSIVE; UPDATE jobs SET name = 'held'")
            for command in [
                ["status"], ["results", "1"], ["get", w.url("/1.png")], ["cancel", "1", "--wait", "3s"],
                ["run", "--drain", "--wait", "3s"],
            ] {
                let refused = try await w.run(command, expecting: 75, within: .seconds(20))
                #expect(refused.errors.contains("locked by another program"), "\(command): \(refused.errors)")
            }
            // Taken for damage, the rows of its log would be left out.
            let rebuilt = try await w.run("db", "rebuild", "--yes", expecting: 75, within: .seconds(40))
            #expect(rebuilt.errors.contains("Another program"), "\(rebuilt.errors)")
            shell.send(SIGKILL)
            _ = try await shell.wait()
            try await w.drain()
        }
    }

    @Test func `While a shell has a transaction open, reading commands answer, and writing commands end with 75`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            try await w.drain()
            let shell = try await w.shell(holding: "BEGIN IMMEDIATE; UPDATE jobs SET name = 'held'")
            let child = try w.start()
            for command in [
                ["status"], ["results", "1"], ["get", w.url("/1.png")], ["explain", w.url("/1.png")], ["hosts"],
                ["metrics"], ["cache", "stats"], ["blacklist", "list"],
            ] {
                try await w.run(command, within: .seconds(10))
            }
            let cancel = try await w.run("cancel", "1", "--wait", "3s", expecting: 75, within: .seconds(20))
            #expect(cancel.errors.contains("Waiting for process \(shell.pid) (sqlite3)"), "\(cancel.errors)")
            #expect(cancel.errors.contains("is locked by process \(shell.pid) (sqlite3)"))
            let list = try w.file("list.txt", w.url("/3.png") + "\n")
            for command in [["run", "--drain"], ["warm", list]] {
                let second = try await w.run(command + ["--wait", "3s"], expecting: 75, within: .seconds(20))
                #expect(second.errors.contains("Waiting for process \(shell.pid) (sqlite3)"), "\(second.errors)")
                #expect(second.errors.contains("is locked by process \(shell.pid) (sqlite3)"))
            }
            // A worker that has not begun its work stops at once.
            let third = try w.start()
            try await w.eventually("the worker names the shell") {
                try w.errors(of: third).contains("Waiting for process")
            }
            third.send(SIGTERM)
            #expect(try await third.wait() == .code(75))
            shell.send(SIGKILL)
            _ = try await shell.wait()
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }

    @Test func `A result that can't be written is an error`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            for command in [
                "--help", "run --help", "help cache", "--version", "status", "results 1", "metrics",
                "explain \(w.url("/1.png"))",
            ] {
                let result = try await w.run(
                    "-c", "exec \(TestWorker.binary) \(command) >/dev/full", program: "/bin/sh", expecting: 74)
                #expect(result.errors.contains("can't be written to standard output"), "\(command)")
            }
        }
    }

    private static let isRoot = geteuid() == 0
    private static let needsRoot: Comment = "only root can change mounts and users"

    @Test(.enabled(if: isRoot, needsRoot)) func `A command without /proc is refused with a reason`() async throws {
        try await withWorker { w in
            let script = "umount -l /proc && exec \(TestWorker.binary) enqueue https://example.com/a.jpg"
            let result = try await w.run("-m", "/bin/sh", "-c", script, program: "/usr/bin/unshare", expecting: 69)
            #expect(result.errors.contains("/proc is not mounted"))
            #expect(result.output.isEmpty)
            #expect(access(w.database, F_OK) != 0)
        }
    }

    @Test(.enabled(if: isRoot, needsRoot))
    func `Reading commands work for a user who may read the database and not its lock file`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            chmod(w.home, 0o755)
            chmod(w.database, 0o644)
            chmod(w.database + ".lock", 0o600)
            // The program lies where only we may look; a copy doesn't. The folders above are the test's own.
            let program = w.home + "/program"
            _ = try ChildProcess.run("cp", [TestWorker.binary, program])
            defer { unlink(program) }
            chmod(program, 0o755)
            var folder = FilePath(w.home).removingLastComponent()
            chmod(folder.string, 0o755)
            folder.removeLastComponent()
            for command in [["status"], ["results", "1"], ["get", w.url("/1.png")]] {
                let words = ["--reuid=65534", "--regid=65534", "--clear-groups", program]
                try await w.run(words + command, program: "/usr/bin/setpriv")
            }
            chmod(w.database + ".lock", 0o644)
        }
    }

    @Test func `A running worker makes removed cache folders again`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let child = try await w.startRegistered()
            _ = try ChildProcess.run("rm", ["-r", "\(w.cache)/blobs", "\(w.cache)/quarantine"])
            let job = try await w.enqueue((0..<20).map { w.url("/\($0).png") })
            try await w.untilEnded(job)
            #expect(try await w.counts(job) == "20|0|0|0|0")
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
        }
    }

    @Test func `No file is evicted if evicting all files would not free enough space`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue((0..<10).map { w.url("/\($0).png") })
            try await w.drain()
            let files = w.blobs.sorted()
            let free = ["--min-free", "1000000GiB"]
            try await w.run(["run", "--drain", "--allow-addresses", "loopback"] + free)
            #expect(w.blobs.sorted() == files)
            try await w.enqueue(w.url("/77.png"))
            let full = try await w.run(["run", "--drain", "--allow-addresses", "loopback"] + free, expecting: 75)
            #expect(full.errors.contains("lower it, or free space on the disk"), "\(full.errors)")
            #expect(w.blobs.sorted() == files)
            try await w.drain()
        }
    }

    @Test func `A run on a small disk works with the default free space`() async throws {
        try await withWorker { w in
            try await SmallDisk.lend { disk in
                let (database, cache) = (disk.path + "/worker.db", disk.path + "/cache")
                let place = ["--db", database, "--cache", cache]
                try await w.run(["enqueue"] + (0..<20).map { w.url("/\($0).png") } + place)
                try await w.run(["run", "--drain", "--allow-addresses", "loopback"] + place)
                #expect(try await w.run(["results", "1", "--format", "csv"] + place).output.contains(",done,"))
            }
        }
    }

    @Test func `A copied cache and database work together, and are refused with the originals`()
        async throws
    {
        try await withWorker { w in
            try await w.enqueue([w.url("/1.png"), w.url("/2.png")])
            try await w.drain()
            let copy = w.place("copy")
            try #require(mkdir(copy, 0o755) == 0)
            for file in [w.database, w.cache] { _ = try ChildProcess.run("cp", ["-a", file, copy]) }
            let (database, cache) = (copy + "/worker.db", copy + "/cache")
            for (one, other) in [(database, w.cache), (w.database, cache)] {
                for command in [["cache", "verify"], ["run", "--drain"], ["cache", "gc", "--orphan-grace", "0"]] {
                    let result = try await w.run(command + ["--db", one, "--cache", other], expecting: 73)
                    #expect(result.errors.contains("is a copy of"), "\(result.errors)")
                }
            }
            // Each pair by itself works.
            try await w.run("cache", "verify", "--db", database, "--cache", cache)
            try await w.run("cache", "verify")
            // And from then on they are strangers, wherever they lie.
            let crossed = try await w.run("cache", "verify", "--db", database, expecting: 73)
            #expect(crossed.errors.contains("belong"))
        }
    }

    @Test func `A database and a cache still belong together after a move or a restored backup`() async throws {
        try await withWorker { w in
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            let moved = w.place("moved")
            try #require(rename(w.cache, moved) == 0)
            try await w.run("cache", "verify", "--cache", moved)
            try #require(rename(moved, w.cache) == 0)
            try await w.run("cache", "verify")
            let backup = w.place("backup.db")
            try await w.run("db", "backup", backup)
            for end in ["-wal", "-shm"] { unlink(w.database + end) }
            try #require(rename(backup, w.database) == 0)
            try await w.run("cache", "verify")
            try await w.run("get", w.url("/1.png"))
        }
    }

    @Test func `The next start removes drafts of markers and of rebuilds that kills left`() async throws {
        try await withWorker { w in
            try await w.run("init")
            let dead = try RunningProgram("/bin/true", [], files: .init(), environment: [:])
            _ = try await dead.wait()
            let drafts = [
                "\(w.cache)/CACHE_VERSION.\(dead.pid).7", w.database + ".rebuilding",
                w.database + ".rebuilding-journal",
            ]
            for draft in drafts { try w.write([1], to: draft) }
            try await Task.sleep(for: .seconds(1.2))
            try await w.enqueue(w.url("/1.png"))
            try await w.drain()
            for draft in drafts { #expect(access(draft, F_OK) != 0, "\(draft)") }
        }
    }

    @Test func `A drain that waits for another worker's item says so`() async throws {
        try await withWorker({ $0.path == "/slow.png" ? .silence : Pictures.tiny($0) }) { w in
            try await w.enqueue(w.url("/slow.png"))
            let other = try w.start("--silence-timeout", "12s", "--total-timeout", "12s", "--max-tries", "1")
            try await w.eventually("it is at work") {
                try await w.value("SELECT active FROM jobs") == "1"
            }
            let drain = try await w.drain("--max-tries", "1", expecting: nil)
            let sentence = "Waiting: 1 item is active in the worker of process \(other.pid)"
            #expect(drain.errors.contains(sentence), "\(drain.errors)")
        }
    }
}

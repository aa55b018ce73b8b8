import SystemPackage
import TestSupport
import Testing

/// The machine's clock, as the programs of a test see it, is set while they run. Time itself goes on as it does.
private struct SetClock: Sendable {
    static let compiler = "clang"
    static let missing: Comment = "there is no clang here, which comes with Swift"
    static let isPossible = ChildProcess.find(compiler) != nil

    /// Loaded before the C library. libfaketime is none for these programs: it takes timers of the steady clock for some of
    /// the machine's, and in a process that it puts variables into Swift doesn't find the arguments.
    private static let source = """
        #include <fcntl.h>
        #include <stdlib.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        static const volatile long *ahead;

        __attribute__((constructor)) static void begin(void) {
            const char *path = getenv("\(variable)");
            int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
            if (file < 0) return;
            void *bytes = mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
            if (bytes != MAP_FAILED) ahead = bytes;
            close(file);
        }

        int clock_gettime(clockid_t clock, struct timespec *time) {
            int result = syscall(SYS_clock_gettime, clock, time);
            int isSet = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
            if (result == 0 && isSet && ahead) time->tv_sec += *ahead;
            return result;
        }

        int gettimeofday(struct timeval *time, void *zone) {
            struct timespec now;
            if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
            time->tv_sec = now.tv_sec;
            time->tv_usec = now.tv_nsec / 1000;
            return 0;
        }

        time_t time(time_t *result) {
            struct timespec now;
            if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """
    private static let variable = "PREFETCH_TEST_CLOCK"

    private let file: String
    private let library: String

    init(of worker: TestWorker) async throws {
        file = worker.place("clock")
        library = worker.place("clock.so")
        let text = try worker.file("clock.c", Self.source)
        try await worker.run("-shared", "-fPIC", "-O1", "-o", library, text, program: Self.compiler)
        try set(ahead: 0)
    }

    /// Never shortened: it is mapped into processes that run.
    func set(ahead seconds: Int) throws {
        let file = try FileDescriptor.open(
            FilePath(file), .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWrite])
        try file.closeAfter {
            _ = try withUnsafeBytes(of: seconds) { try file.writeAll(toAbsoluteOffset: 0, $0) }
        }
    }

    var environment: [String: String] { ["LD_PRELOAD": library, Self.variable: file] }
}

@Suite("Clocks that are set", .timeLimit(.minutes(15)), .enabled(if: SetClock.isPossible, SetClock.missing))
struct ClockFaultTests {
    /// What must be as it was: who has what in hand, what waits, what is listed, kept and cached.
    private func standing(_ w: TestWorker, _ clock: SetClock) async throws -> [String] {
        let environment = clock.environment
        let rows = try await w.rows("SELECT id, state, lease, attempts FROM items WHERE id <= 6 ORDER BY id")
        let view = try await w.run(
            ["-batch", "-cmd", ".timeout 20000", w.database, "SELECT class FROM blacklist"], program: "sqlite3",
            environment: environment)
        let list = try await w.run("blacklist", "list", environment: environment)
        return rows + view.lines + [
            "\(list.lines.count { $0.contains("/gone.png") }) listed", "\(w.blobs.count) files",
        ]
    }

    private static func reply(_ request: LoopbackOrigin.Request, _ gate: Gate) -> LoopbackReply {
        switch request.path {
        case "/gone.png": return .status(404)
        case "/busy.png": return .status(503, headers: [(name: "Retry-After", value: "3600")])
        case "/held.png":
            gate.wait(atMost: 300)
            return .ok(Pictures.png(9), type: "image/png")
        default: return Pictures.reply(request)
        }
    }

    @Test(arguments: [10, -10])
    func `Setting the clock by years ends no lease, wait, blacklist entry or cached file early`(_ years: Int)
        async throws
    {
        let gate = Gate()
        try await withWorker({ Self.reply($0, gate) }) { w in
            // A test that failed is not to wait for it.
            defer { gate.open() }
            let clock = try await SetClock(of: w)
            // A host of its own, since the whole of it is left alone.
            let busy = "http://localhost:\(w.origin.port)/busy.png"
            try await w.enqueue((0..<3).map { w.url("/\($0).png") })
            for url in [w.url("/gone.png"), busy, w.url("/held.png")] { try await w.enqueue(url) }
            // What is held is not to be given up, however slow the machine is.
            let patient = TestWorker.quick + ["--silence-timeout", "10m", "--total-timeout", "10m"]
            let first = try w.start(patient, environment: clock.environment)
            let states = "SELECT group_concat(state, ' ') FROM (SELECT state FROM items ORDER BY id)"
            let wanted = "done done done failed delayed active"
            // What it came to instead is told below.
            try? await w.eventually("all have come as far as they can", within: .seconds(60)) {
                try await w.value(states) == wanted
            }
            let reached = try await w.value(states)
            let said = try w.errors(of: first)
            #expect(reached == wanted, "\(said) \(String(describing: first.exit))")
            let before = try await standing(w, clock)
            try clock.set(ahead: years * 365 * 86_400)
            let other = try w.start(patient + ["--keep-jobs", "30d"], environment: clock.environment)
            try await w.eventually("another worker has come", within: .seconds(60)) {
                try await w.value("SELECT count(*) FROM workers WHERE pid = \(other.pid)") == "1"
            }
            // It would be done again, and fail at once.
            try await w.enqueue(w.url("/gone.png"))
            try await w.eventually("what is listed is not asked for", within: .seconds(60)) {
                try await w.value("SELECT blacklisted FROM jobs WHERE id = 5") == "1"
            }
            // The new one knows that it is to leave that host alone.
            try await w.enqueue("http://localhost:\(w.origin.port)/other.png")
            try await w.eventually("what is there has to wait", within: .seconds(60)) {
                try await w.value("SELECT delayed FROM jobs WHERE id = 6") == "1"
            }
            // Time enough for each to look for what is over.
            try await Task.sleep(for: .seconds(3))
            let after = try await standing(w, clock)
            #expect(after == before)
            let environment = clock.environment
            let collected = try await w.run("cache", "gc", "--cache-max-age", "7d", environment: environment)
            #expect(collected.output.hasPrefix("0 files evicted"))
            let pruned = try await w.run("prune", "--older-than", "30d", "--yes", environment: environment)
            #expect(pruned.output.hasPrefix("0 jobs"))
            let last = try await standing(w, clock)
            #expect(last == before)
            gate.open()
            try await w.untilEnded("4", within: .seconds(60))
            #expect(try await w.counts("4") == "1|0|0|0|0")
            for path in ["/gone.png", "/busy.png", "/held.png"] { #expect(w.origin.requestCount(path) == 1, "\(path)") }
            #expect(w.origin.requestCount("/other.png") == 0)
        }
    }
}

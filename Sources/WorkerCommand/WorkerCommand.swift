import ArgumentParser
import Glibc
import PrefetchWorker

@main
struct WorkerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "Fetches, sizes and caches images ahead of need, from a table of jobs.",
        discussion: """
            EXAMPLES:
              worker enqueue https://example.com/a.jpg --variant thumb=320x240,cover,webp
              worker run --concurrency 6 --drain
              worker status
              worker get https://example.com/a.jpg --variant thumb

            Every command finds the database by --db, WORKER_DB or ./worker.db, and the cache by --cache, WORKER_CACHE or \
            ./cache. Jobs can also be inserted with any sqlite3 shell; see docs/reference/sql.md.
            """,
        version: "\(workerVersion) (\(LinkedLibraries.versions.joined(separator: ", ")))",
        subcommands: [
            InitCommand.self, EnqueueCommand.self, RunCommand.self, WarmCommand.self, ScheduleCommand.self,
            ManifestCommand.self, RecipeCommand.self, StatusCommand.self,
            WaitCommand.self, ResultsCommand.self, EventsCommand.self, GetCommand.self, ExportCommand.self,
            SheetCommand.self,
            ImportCommand.self, ExplainCommand.self, CancelCommand.self, PauseCommand.self, ResumeCommand.self,
            ReorderCommand.self, RetryCommand.self, BlacklistCommand.self, HostsCommand.self, LimitsCommand.self,
            CacheCommand.self,
            DatabaseCommand.self, PruneCommand.self, MetricsCommand.self, DashboardCommand.self, ConfigCommand.self,
            DoctorCommand.self,
            HelperCommand.self,
        ],
    )

    @MainActor static func main() async {
        requireProc()
        // Sends only errors and worse to syslog: libdispatch would otherwise report each thread whose priority it can't
        // raise, which only root may do.
        setlogmask(1 << (LOG_ERR + 1) - 1)
        Heaps.limit()
        await run(Array(CommandLine.arguments.dropFirst()))
    }

    /// Parses and runs the command; a mistake in its words ends the program with a sentence that suggests a correction.
    private static func run(_ words: [String]) async {
        if words.first == "help", let sentence = CommandLineAdvice.sentence(for: words) { refuse(sentence) }
        do {
            var command = try await asyncParseAsRoot(words)
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            if exitCode(for: error) == .success {
                // The help, the version or a completion script; the parser's own print ignores a full disk.
                let text = fullMessage(for: error)
                if !text.isEmpty { Terminal.print(text) }
                Glibc.exit(0)
            }
            guard exitCode(for: error) == .usage, !(error is ExitCode) else { exit(withError: error) }
            if let sentence = CommandLineAdvice.sentence(for: words) { refuse(sentence) }
            // The parser's message quotes the value, which may be a secret, so only the setting's sentence is shown.
            let message = message(for: error)
            if let match = message.wholeMatch(of: /(?s)The value '.*' is invalid for '[^']*': (.*)/) {
                refuse(String(match.output.1))
            }
            refuse(CommandLineAdvice.sentence(of: message, for: words))
        }
    }

    private static func refuse(_ sentence: String) -> Never {
        Terminal.error("worker: \(sentence)")
        Glibc.exit(ExitCode.usage.rawValue)
    }
}

extension WorkerCommand {
    /// Requires /proc: without it Swift cannot read the arguments, blobs get no names, and helpers are not found.
    private static func requireProc() {
        guard access("/proc/self/cmdline", R_OK) != 0 else { return }
        Terminal.error(
            "worker: /proc is not mounted here, and nothing works without it. Mount it: mount -t proc proc /proc")
        Glibc.exit(ExitCode.unavailable.rawValue)
    }
}

let workerVersion = "1.0.0"

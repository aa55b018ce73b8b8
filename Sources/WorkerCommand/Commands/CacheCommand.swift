import ArgumentParser
import PrefetchWorker

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Looks after the cache.", subcommands: [Verify.self])

    struct Verify: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "verify",
            abstract: "Reads every blob and checks it and the index against each other.",
            discussion: """
                Damaged blobs go to the cache's quarantine, and the next job that wants them makes them anew.
                Exit code 0 when all is well, 74 when something was wrong.

                EXAMPLES:
                  worker cache verify
                  worker cache verify --json
                """,
        )
        @OptionGroup var common: CommonOptions
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                let cache = try common.openCache()
                let audit = try await common.withStore { store in
                    try await CacheAudit.run(store: store, cache: cache) { count in
                        if Terminal.errorIsTerminal { Terminal.errorRaw("\r\(count) blobs are good ") }
                    }
                }
                if Terminal.errorIsTerminal { Terminal.errorRaw("\r\u{1B}[2K") }
                if json { Terminal.print(try Output.json(audit)) } else { lines(audit).forEach(Terminal.print) }
                if !audit.isSound { throw ExitCode.inputOutput }
            }
        }

        private func lines(_ audit: CacheAudit) -> [String] {
            ["\(audit.good) blobs are good (\(Output.bytes(audit.bytes))), \(audit.unreferenced) unreferenced"]
                + some(audit.missing) { "missing: \($0)" }
                + some(audit.damaged) { "damaged: \($0) (now in quarantine)" }
                + some(audit.strangers) { "not ours: \(Terminal.safe($0))" } + audit.inconsistencies
        }

        /// A person needs a few examples; a script asks for JSON and gets all.
        private func some(_ names: [String], _ line: (String) -> String) -> [String] {
            let shown = names.prefix(10).map(line)
            return names.count > 10 ? shown + ["… and \(names.count - 10) more; --json lists all"] : shown
        }
    }
}

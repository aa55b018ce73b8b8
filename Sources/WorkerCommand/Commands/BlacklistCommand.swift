import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct BlacklistCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "blacklist",
        abstract: "Lists and removes URLs that are not fetched until their entry expires.",
        discussion: """
            EXAMPLES:
              worker blacklist list --class http-404
              worker blacklist remove https://example.com/a.jpg
              worker blacklist clear --host images.example.com --dry-run
            """,
        subcommands: [List.self, Remove.self, Clear.self],
    )

    /// The entries that the command applies to.
    struct Selection: ParsableArguments {
        @Option(help: "Only this host.")
        var host: String?

        @Option(name: .customLong("class"), help: "Only this class of failure, such as http-404.")
        var failure: String?

        func selection() throws -> Blacklist.Selection? {
            if let host, failure == nil { return .host(try HostNames.parse(host), or: host) }
            if let failure, host == nil { return .failure(try FailureClass(named: failure)) }
            guard host == nil else { throw SettingsError("Name a host or a class, not both.") }
            return nil
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the entries in force, the latest first.",
            discussion: """
                EXAMPLES:
                  worker blacklist list
                  worker blacklist list --class http-404 --json
                """,
        )
        @OptionGroup var common: CommonOptions
        @OptionGroup var selection: Selection
        @Argument(help: "Only this URL.") var url: String?
        @Option(Setting.whole("limit", 1_000, in: 1...1_000_000, "How many at most.")) var limit: Int?
        @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.") var showCredentials =
            false
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                let limit = limit ?? 1_000
                try await common.readingStore { store in
                    let selected = try selection.selection()
                    guard url == nil || selected == nil else {
                        throw SettingsError("Name a URL, a host or a class, not two of them.")
                    }
                    var found: [BlacklistEntry] = []
                    if let url {
                        for key in try await store.cache.keys(ofURL: url, everyState: true) {
                            found += try await store.blacklist.entries(.url(key), limit: limit)
                        }
                    } else {
                        found = try await store.blacklist.entries(selected ?? .all, limit: limit)
                    }
                    let redaction = try common.redaction()
                    let entries = showCredentials ? found : found.map { $0.hidden(by: redaction) }
                    if json { return Terminal.print(try Output.json(entries)) }
                    let rows = entries.map { entry in
                        [
                            Terminal.safe(entry.url), entry.failure.rawValue, "\(entry.count)",
                            Output.time(entry.expiresAt), Terminal.safe(entry.message ?? ""),
                        ]
                    }
                    Output.table(["url", "class", "times", "until", "reason"], rows, right: [2]).forEach(Terminal.print)
                }
            }
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Removes entries: of URLs, a host, or a failure class.",
            discussion: """
                EXAMPLES:
                  worker blacklist remove https://example.com/a.jpg
                  worker blacklist remove --host example.com
                  worker blacklist remove --class http-404
                """,
        )
        @OptionGroup var common: CommonOptions
        @OptionGroup var selection: Selection
        @Argument(help: "URLs.") var urls: [String] = []

        func run() async throws {
            try await reportingErrors {
                let selected = try selection.selection()
                guard (selected == nil) != urls.isEmpty else {
                    throw SettingsError("Name URLs, a --host or a --class. To remove all: worker blacklist clear")
                }
                try LookedUpURL.check(urls)
                try await common.withStore { store in
                    var count = 0
                    if let selected { count = try await store.blacklist.remove(selected) }
                    for url in urls {
                        // A job's key rule may have listed the URL under another key.
                        for key in try await store.cache.keys(ofURL: url, everyState: true) {
                            count += try await store.blacklist.remove(.url(key))
                        }
                    }
                    Terminal.print("\(count) removed")
                    if count == 0 { throw ExitCode.notFound }
                }
            }
        }
    }

    struct Clear: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "clear",
            abstract: "Removes all entries, or all of a host or failure class.",
            discussion: """
                EXAMPLES:
                  worker blacklist clear
                  worker blacklist clear --host example.com
                """,
        )
        @OptionGroup var common: CommonOptions
        @OptionGroup var selection: Selection
        @OptionGroup var confirmation: Confirmation

        func run() async throws {
            try await reportingErrors {
                let selected = try selection.selection() ?? .all
                try await common.withStore { store in
                    let count = try await store.blacklist.count(selected)
                    let plan = count == 1 ? "1 entry of the blacklist is" : "\(count) entries of the blacklist are"
                    guard count > 0, try confirmation.allows("\(plan) removed.") else {
                        if count == 0 { Terminal.print("0 removed") }
                        return
                    }
                    Terminal.print("\(try await store.blacklist.remove(selected)) removed")
                }
            }
        }
    }
}

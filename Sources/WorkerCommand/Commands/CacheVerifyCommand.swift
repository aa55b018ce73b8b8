import ArgumentParser
import ContentCache
import Jobs
import PrefetchWorker

struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Reads every blob and checks it and the index against each other.",
        discussion: """
            The command moves damaged files to quarantine, and removes missing and damaged files from the index. The next \
            job that needs such a file makes it again. With --repair the command queues all lost files at once, also those \
            that an earlier verification found. It lists a lost file each time until an unfinished job is to fetch it, the \
            file is restored, it is older than --cache-max-age, or 'worker cache clear' removes it. You can run it beside workers. --resume continues a verification that was stopped. Exit code 0 when all is well, 74 when something was wrong, 130 or 143 when SIGINT or SIGTERM has \
            stopped it.

            EXAMPLES:
              worker cache verify
              worker cache verify --quick --json
              worker cache verify --sample 5 --repair
              worker cache verify --full --rate 50MiB --resume
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Names and sizes only; nothing is read.") var quick = false
    @Option(
        help: ArgumentHelp("Read this percentage of the blobs, at random.", valueName: "percent"),
        transform: { try Self.percentage($0) })
    var sample: Double?
    @Flag(help: "Read everything (the default).") var full = false
    @Option(Setting.bytes("rate", nil, "Bytes to read a second, at most.", standardText: "no limit")) var rate: Int64?
    @Flag(help: "Go on where the last verification was stopped.") var resume = false
    @Flag(help: "Queue the URLs of missing and damaged files again.") var repair = false
    @Flag(help: "Print JSON.") var json = false

    func validate() throws {
        guard (quick ? 1 : 0) + (sample == nil ? 0 : 1) + (full ? 1 : 0) < 2 else {
            throw ValidationError("--quick, --sample and --full exclude each other.")
        }
    }

    private static func percentage(_ text: String) throws -> Double {
        guard let number = Double(text), number > 0, number <= 100 else {
            throw SettingsError(
                "--sample takes a number above 0 and up to 100, not '\(text.prefix(40))'; --quick looks at names and sizes alone."
            )
        }
        return number
    }

    func run() async throws {
        try await reportingErrors {
            var options = CacheAudit.Options()
            options.depth = quick ? .quick : sample.map { .sample(percent: $0) } ?? .full
            if let rate { options.rate = rate }
            options.resumes = resume
            options.repairs = repair
            let (audit, interruption) = try await stoppable(patience: .seconds(10)) { stop in
                options.stop = stop
                return try await common.withCache { store, cache in
                    try await CacheAudit.run(store: store, cache: cache, options: options) { count in
                        if Terminal.errorIsTerminal { Terminal.errorRaw("\r\(count) blobs are good ") }
                    }
                }
            }
            if Terminal.errorIsTerminal { Terminal.errorRaw("\r\u{1B}[2K") }
            if json { Terminal.print(try Output.json(audit)) } else { lines(audit).forEach(Terminal.print) }
            if audit.wasStopped, let interruption {
                Terminal.error(
                    quick
                        ? "worker: Stopped before everything was checked."
                        : "worker: Stopped before everything was read. Go on with: worker cache verify --resume")
                throw interruption
            }
            if !audit.isSound { throw ExitCode.inputOutput }
        }
    }

    private func lines(_ audit: CacheAudit) -> [String] {
        let extent =
            quick ? " by name and size; none was read" : sample == nil ? "" : "; \(audit.read) of them were read"
        var lines = [
            "\(audit.good) \(audit.good == 1 ? "blob is" : "blobs are") good (\(Output.bytes(audit.bytes)))\(extent), \(audit.orphans) orphans"
        ]
        lines += some(audit.missing) { "missing: \($0)" }
        lines += some(audit.damaged) { "damaged: \($0) (now in quarantine)" }
        lines += some(audit.unreadable) { "unreadable: \($0)" }
        lines += some(audit.strangers) { "does not belong in the cache: \(Terminal.safe($0))" } + audit.inconsistencies
        if audit.repairedLinks > 0 {
            lines.append("\(audit.repairedLinks) \(audit.repairedLinks == 1 ? "link was" : "links were") corrected")
        }
        lines += audit.repairJobs.map { "queued again as job \($0)" }
        lines += some(audit.lost.map(\.name)) { "lost, not restored yet: \($0)" }
        if audit.blacklisted > 0 {
            lines.append(
                "\(audit.blacklisted) of them stay lost while their URLs are on the blacklist: worker blacklist list")
        }
        if audit.lost.count > audit.blacklisted {
            lines.append("queue the lost files again with: worker cache verify --repair")
        }
        if audit.onTheirWay > 0 {
            lines.append(
                "\(audit.onTheirWay) lost \(audit.onTheirWay == 1 ? "file is" : "files are") being fetched again")
        }
        if audit.quarantinedFiles > 0 {
            lines.append(
                "\(audit.quarantinedFiles) \(audit.quarantinedFiles == 1 ? "file is" : "files are") in quarantine "
                    + "(\(Output.bytes(audit.quarantinedBytes))), deleted after --quarantine-age, or with: worker cache clear --quarantine"
            )
        }
        if audit.unrepairable > 0 {
            lines.append(
                "\(Output.count(audit.unrepairable, "URL")) can't be queued again: the jobs of such URLs were removed")
        }
        return lines
    }

    /// The first few names for people; scripts use JSON, which has all of them.
    private func some(_ names: [String], _ line: (String) -> String) -> [String] {
        let shown = names.prefix(10).map(line)
        return names.count > 10 ? shown + ["… and \(names.count - 10) more; --json lists all"] : shown
    }
}

extension LostFile {
    fileprivate var name: String {
        Terminal.safe(URLText.withoutCredentials(key)) + (variant.isEmpty ? "" : " (\(Terminal.safe(variant)))")
    }
}

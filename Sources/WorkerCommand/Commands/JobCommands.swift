import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancels a job's unfinished items.",
        discussion: """
            With --url or --host only the items of these URLs or this host end, and the job goes on with the others. A transfer that other jobs wait \
            for goes on, too.

            EXAMPLES:
              worker cancel 7
              worker cancel --all
              worker cancel 7 --url https://example.com/a.jpg
              worker cancel 7 --host slow.example.com
            """,
    )
    @OptionGroup var common: CommonOptions
    @OptionGroup var meant: JobChoice
    @Option(help: "Only items with this URL, as it was enqueued; can be given several times.") var url: [String] = []
    @Option(help: "Only items of this host.") var host: String?

    func run() async throws {
        guard let job = meant.job else {
            guard url.isEmpty, host == nil else { throw ValidationError("--url and --host go with one job.") }
            return try await changeAll(common) { store in
                let count = try await store.control.cancelAll()
                Terminal.print(count == 1 ? "1 job is cancelled" : "\(count) jobs are cancelled")
            }
        }
        try await change(common, job) { store in
            guard !url.isEmpty || host != nil else { return try await store.control.cancel(job: job) }
            let count = try await store.control.cancel(
                job: job, urls: Set(url), try JobControl.FailureSelection(at: host))
            Terminal.error(count == 1 ? "1 item ends as cancelled." : "\(count) items end as cancelled.")
        }
    }
}

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pauses a job, or all of them; downloads that have begun are finished.",
        discussion: """
            With --all workers claim nothing of any job, new ones included, until worker resume --all. Jobs keep their states.

            EXAMPLES:
              worker pause 7
              worker pause --all
            """,
    )
    @OptionGroup var common: CommonOptions
    @OptionGroup var meant: JobChoice

    func run() async throws {
        guard let job = meant.job else {
            return try await changeAll(common) { store in
                let isNew = try await store.control.pauseAll()
                Terminal.print(isNew ? "all jobs are paused" : "all jobs were paused already")
            }
        }
        try await change(common, job) { try await $0.control.pause(job: job) }
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes a paused job, or all of them.",
        discussion: """
            --all undoes worker pause --all; a job that 'worker pause JOB' paused stays paused.

            EXAMPLES:
              worker resume 7
              worker resume --all
            """,
    )
    @OptionGroup var common: CommonOptions
    @OptionGroup var meant: JobChoice

    func run() async throws {
        guard let job = meant.job else {
            return try await changeAll(common) { store in
                let wasPaused = try await store.control.resumeAll()
                Terminal.print(wasPaused ? "all jobs are resumed" : "nothing was paused with --all")
            }
        }
        try await change(common, job) { try await $0.control.resume(job: job) }
    }
}

/// One job, or all of them.
struct JobChoice: ParsableArguments {
    @Argument(help: "The job.", transform: { try JobNumber.read($0) }) var job: Int64?
    @Flag(help: "All jobs.") var all = false

    func validate() throws {
        guard (job == nil) == all else { throw ValidationError("Name a job, or --all.") }
    }
}

struct RetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Puts a job's failed and cancelled items back into the queue.",
        discussion: """
            URLs on the blacklist stay there, and their items end as 'blacklisted' without a request. With --retry-failed the command \
            removes the URLs of the retried items from the blacklist.

            EXAMPLES:
              worker retry 7
              worker retry 7 --retry-failed
              worker retry 7 --class timeout
              worker retry 7 --host images.example.com --since 2h
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.", transform: { try JobNumber.read($0) }) var job: Int64
    @Option(name: .customLong("class"), help: "Only this class of failure, such as http-404.") var failure: String?
    @Option(help: "Only this host.") var host: String?
    @Option(Setting.time("since", nil, "Only items that ended in this last time, such as 90m, 12h or 7d.")) var since:
        Int64?
    @Flag(help: "Take the URLs of these items off the blacklist.") var retryFailed = false

    func run() async throws {
        try await change(common, job) { store in
            var selection = try JobControl.FailureSelection(at: host)
            selection.failure = try failure.map(FailureClass.init(named:))
            selection.since = since.map { store.database.currentTime - $0 }
            let (items, listed) = try await store.control.retry(job: job, selection, takesOffBlacklist: retryFailed)
            Terminal.error(items == 1 ? "1 item goes back into the queue." : "\(items) items go back into the queue.")
            if items == 0, let sentence = try await noneOf(selection, in: store) { Terminal.error(sentence) }
            guard listed > 0 else { return }
            Terminal.error(
                retryFailed
                    ? "\(listed) of their URLs were taken off the blacklist."
                    : "\(listed) of their URLs are on the blacklist, so these items end as blacklisted unless the worker's settings have changed: add --retry-failed to request them."
            )
        }
    }

    /// The job's failures as a sentence, for a selection that matches none of them; nil if the job has none.
    private func noneOf(_ selection: JobControl.FailureSelection, in store: JobStore) async throws -> String? {
        let failures = try await FailureCounts(of: [job], in: store)
        guard !failures.counts.isEmpty else { return nil }
        let question =
            selection.host.map { NearestWord.question($0, among: failures.counts.map(\.host)) }
            ?? selection.failure.map { NearestWord.question($0.rawValue, among: failures.counts.map(\.failureClass)) }
        return "The job's failures are: \(failures.text).\(question ?? "")"
    }
}

extension JobControl.FailureSelection {
    /// - Parameter host: as the user typed it.
    fileprivate init(at host: String?) throws {
        self.init(host: try host.map(HostNames.parse))
        nameOfHost = HostNames.name(ofURL:)
    }
}

extension FailureClass {
    /// - Throws: an error that lists the valid names.
    init(named text: String) throws {
        guard let match = FailureClass(rawValue: text) else {
            let names = FailureClass.allNamed.map(\.rawValue)
            let habits = [
                "notfound": "http-404", "not-found": "http-404", "forbidden": "http-403", "ssl": "tls-certificate",
            ]
            // 404, http404, HTTP_404.
            let status = text.lowercased().wholeMatch(of: /(?:http)?[-_ ]?([1-9][0-9][0-9])/)?.output.1
            let near =
                status.map { "http-\($0)" } ?? habits[text.lowercased()] ?? NearestWord.find(text, among: names)
            let advice =
                near.map { "Did you mean '\($0)'?" }
                ?? "The classes are: \(names.joined(separator: ", ")), http-100 to http-999."
            throw SettingsError("Unknown class '\(text)'. \(advice)")
        }
        self = match
    }
}

private func changeAll(_ common: CommonOptions, _ body: (JobStore) async throws -> Void) async throws {
    try await reportingErrors { try await common.withStore { try await body($0) } }
}

/// Changes a job and prints its new state.
private func change(_ common: CommonOptions, _ job: JobID, _ body: (JobStore) async throws -> Void) async throws {
    try await reportingErrors {
        try await common.withStore { store in
            try await body(store)
            guard let progress = try await store.reports.progress(job: job) else { return }
            Terminal.print("job \(job): \(progress.state.rawValue), \(progress.ended) of \(progress.total) ended")
        }
    }
}

import ArgumentParser
import Jobs
import PrefetchWorker

struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Ends a job; what has not ended yet ends as cancelled.",
        discussion: """
            With --url or --host only those items end, and the job goes on with the others. A transfer that other jobs wait \
            for goes on, too.

            EXAMPLES:
              worker cancel 7
              worker cancel 7 --url https://example.com/a.jpg
              worker cancel 7 --host slow.example.com
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.") var job: Int64
    @Option(help: "Only items with this URL, as it was enqueued; can be given several times.") var url: [String] = []
    @Option(help: "Only items of this host.") var host: String?

    func run() async throws {
        try await change(common, job) { store in
            guard !url.isEmpty || host != nil else { return try await store.cancel(job: job) }
            let count = try await store.cancel(job: job, urls: Set(url), try JobStore.FailureSelection(at: host))
            Terminal.error("\(count) items end as cancelled.")
        }
    }
}

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Stops a job from being worked on; what workers have claimed goes on.",
        discussion: """
            EXAMPLE:
              worker pause 7
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.") var job: Int64

    func run() async throws {
        try await change(common, job) { try await $0.pause(job: job) }
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Lets a paused job go on.",
        discussion: """
            EXAMPLE:
              worker resume 7
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.") var job: Int64

    func run() async throws {
        try await change(common, job) { try await $0.resume(job: job) }
    }
}

struct RetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Puts a job's failed and cancelled items back into the queue.",
        discussion: """
            URLs on the blacklist stay there and fail again without a request; --retry-failed takes those of the items that go \
            back off the list.

            EXAMPLES:
              worker retry 7
              worker retry 7 --retry-failed
              worker retry 7 --class timeout
              worker retry 7 --host images.example.com --since 2h
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The job.") var job: Int64
    @Option(name: .customLong("class"), help: "Only this class of failure, such as http-404.") var failure: String?
    @Option(help: "Only this host.") var host: String?
    @Option(help: ArgumentHelp("Only what ended in the last so many seconds, 90m, 12h or 7d.", valueName: "time"))
    var since: String?
    @Flag(help: "Take their URLs off the blacklist.") var retryFailed = false

    func run() async throws {
        try await change(common, job) { store in
            var selection = try JobStore.FailureSelection(at: host)
            selection.failure = try failure.map(FailureClass.init(named:))
            if since != nil {
                let age = try Settings(configFile: nil, environment: [:]).milliseconds(
                    "since", flag: since, default: 0)
                selection.since = store.currentTime - age
            }
            let (items, listed) = try await store.retry(job: job, selection, takesOffBlacklist: retryFailed)
            Terminal.error("\(items) items go back into the queue.")
            guard listed > 0 else { return }
            Terminal.error(
                retryFailed
                    ? "\(listed) of their URLs were taken off the blacklist."
                    : "\(listed) of them stand on the blacklist and will fail again: add --retry-failed to ask for them.")
        }
    }
}

extension JobStore.FailureSelection {
    /// - Parameter host: as somebody has typed it.
    fileprivate init(at host: String?) throws {
        self.init(host: try host.map(HostNames.parse))
        nameOfHost = HostNames.name(ofURL:)
    }
}

extension FailureClass {
    /// - Throws: what the names are.
    init(named text: String) throws {
        guard let match = FailureClass(rawValue: text) else {
            let names = FailureClass.allNamed.map(\.rawValue).joined(separator: ", ")
            throw SettingsError(message: "Unknown class '\(text)'. The classes are: \(names), http-NNN.")
        }
        self = match
    }
}

/// Does something to a job and prints what it is then.
private func change(_ common: CommonOptions, _ job: JobID, _ body: (JobStore) async throws -> Void) async throws {
    try await reportingErrors {
        try await common.withStore { store in
            try await body(store)
            guard let progress = try await store.progress(job: job) else { return }
            Terminal.print("job \(job): \(progress.state.rawValue), \(progress.ended) of \(progress.total) ended")
        }
    }
}

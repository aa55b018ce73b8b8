import ArgumentParser
import Core
import FoundationEssentials
import Jobs

struct EventsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "events",
        abstract: "Prints a line of JSON for each item that ends and each change of a job's state, as it happens.",
        discussion: """
            It begins with all that the log still has (7 days), and then waits for more. The log has each event exactly \
            once and in order. To continue later, give the last id (--after) or name a file that keeps it (--cursor). If the \
            command is killed after it has printed a line and before it has written that file, the next start prints the \
            line again. Lines with "event":"progress" have the number of a job's items that have ended.

            EXAMPLES:
              worker events --job 7
              worker events --since 1h --no-follow | jq -r 'select(.state == "failed") | .url'
              worker events --cursor seen.txt | while read -r line; do handle "$line"; done
            """,
    )

    @OptionGroup var common: CommonOptions

    @Option(
        help: "Only this job; the command ends when the job has ended.", transform: { try JobNumber.read($0) })
    var job: Int64?

    @Option(Setting.time("since", nil, "Only events newer than this, such as 90m, 12h or 7d."))
    var since: Int64?

    @Option(
        help: ArgumentHelp("Only events after the event with this id.", valueName: "id"),
        transform: { text in
            guard let number = Int64(text), number >= 0 else {
                throw SettingsError(
                    "--after takes the id of an event, 0 or above, not '\(text.prefix(40))'. List them with: worker events --no-follow"
                )
            }
            return number
        })
    var after: Int64?

    @Option(
        help: ArgumentHelp(
            "Go on after the event whose id is in this file. The command creates the file and keeps it up to date.",
            valueName: "file"))
    var cursor: String?

    @Flag(
        inversion: .prefixedNo,
        help:
            "Wait for more events at the end of the log, as is the default; --no-follow ends there."
    )
    var follow = true

    @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.")
    var showCredentials = false

    func validate() throws {
        guard [since, after].compactMap({ $0 }).count + (cursor == nil ? 0 : 1) <= 1 else {
            throw ValidationError("--since, --after and --cursor each say where to begin: give one of them.")
        }
    }

    func run() async throws {
        try await reportingErrors { try await common.readingStore { try await show($0) } }
    }

    private func show(_ store: JobStore) async throws {
        if let job, try await store.reports.progress(job: job) == nil {
            throw JobsError(.notFound, "There is no job \(job). List the jobs with: worker status")
        }
        let redaction = try common.redaction()
        let file = cursor.map(CursorFile.init)
        var last = try file?.read() ?? after ?? 0
        if let since { last = try await store.events.last(before: store.database.currentTime - since) }
        for try await event in store.events.events(after: last, job: job, follows: follow) {
            Terminal.print(JSONText.adding("meta", event.meta, to: try Output.json(shown(event, redaction))))
            // Written after the line is printed: after a crash in between, the line is printed again.
            if event.id > last { try file?.write(event.id) }
            last = event.id
        }
    }

    private func shown(_ event: JobEvent, _ redaction: Redaction) -> JobEvent {
        if showCredentials { return event }
        return Terminal.outputIsTerminal ? event.hidden(by: redaction) : event.withoutCredentials
    }
}

/// A file with the id of the last event that was printed.
private struct CursorFile {
    let path: String

    init(_ path: String) { self.path = path }

    func read() throws -> Int64 {
        guard let data = FileManager.default.contents(atPath: path) else {
            guard !FileManager.default.fileExists(atPath: path) else { throw SettingsError("\(path) can't be read.") }
            return 0
        }
        let text = String(decoding: data, as: UTF8.self).filter { !$0.isWhitespace }
        guard let id = Int64(text), id >= 0 else {
            throw SettingsError("\(path) holds no id of an event. Delete it to start from the first event.")
        }
        return id
    }

    /// Replaces the file by a new one, so that a crash leaves the old id or the new one.
    func write(_ id: Int64) throws {
        do {
            try OutputFile.replace(path, "\(id)\n")
        } catch {
            throw SettingsError("\(path) can't be written: \(error)")
        }
    }
}

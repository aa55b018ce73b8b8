import ArgumentParser
import Core
import Glibc
import Jobs
import PrefetchWorker
import SystemPackage

struct ScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Lists and changes schedules: every 'worker run' enqueues the due manifests of its database.",
        discussion: """
            EXAMPLES:
              worker schedule add jobs/shop.yaml --cron '15 * * * *'
              worker schedule list
              worker schedule run shop
            """,
        subcommands: [List.self, Add.self, Remove.self, Pause.self, Resume.self, Run.self],
    )

    struct Add: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "add",
            abstract: "Adds a schedule, or replaces the schedule of this name.",
            discussion: """
                The times are those of crontab(5): minute, hour, day of the month, month, day of the week. The \
                manifest's key 'schedule' gives them, or --cron. Each time is due once, also when the clocks change. The manifest is \
                kept in the database as it is now: add it again when it has changed. Its lists are read at each run.

                EXAMPLES:
                  worker schedule add catalogue.yaml
                  worker schedule add front-page.yaml --cron '*/15 * * * *'
                  worker schedule add sitemap.yaml --cron '17 3 * * mon-fri' --time-zone Europe/Berlin --jitter 10m
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "A manifest: YAML or JSON; see docs/reference/manifests.md.") var manifest: String
        @Option(help: "The schedule's name (the file's name without its ending).") var name: String?
        @Option(help: ArgumentHelp("When it is due, such as '17 3 * * *' or @hourly.", valueName: "times"))
        var cron: String?
        @Option(help: ArgumentHelp("The time zone of these times, such as Europe/Berlin (UTC).", valueName: "zone"))
        var timeZone: String?
        @Option(
            help: ArgumentHelp(
                "Start each run later, by a random time up to this (0). Every worker uses the same delay for a run.",
                valueName: "time"))
        var jitter: String?
        @Option(
            help: ArgumentHelp(
                "For runs that were due while no worker ran: once starts one run, skip starts none (once).",
                valueName: "once|skip"))
        var missed: String?
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                let text = try InputFile.text(manifest, as: "manifest")
                let parsed = try Manifest(parsing: text, manifest)
                var times = parsed.schedule ?? ManifestSchedule()
                if let cron { times.cron = try CronExpression(parsing: cron) }
                if let timeZone { times.zone = try ScheduleZone(named: timeZone) }
                if let jitter { times.jitter = try NewSchedule.jitter(parsing: jitter) }
                if let missed { times.missed = try ManifestSchedule.missed(missed) }
                guard let cron = times.cron else {
                    throw SettingsError(
                        "\(manifest) does not say when it is due: add the key 'schedule' to it, or name the times with --cron, such "
                            + "as --cron '17 3 * * *'.")
                }
                let name = name ?? Manifest.name(ofFile: manifest)
                _ = try parsed.batch(named: name)
                guard !parsed.job.urls.isEmpty || !parsed.sources.isEmpty else {
                    throw SettingsError("\(manifest) has neither urls nor sources.")
                }
                var schedule = NewSchedule(name: name, manifest: text, cron: cron)
                schedule.origin = manifest == "-" ? nil : Self.absolute(manifest)
                schedule.zone = times.zone
                schedule.jitter = times.jitter
                schedule.missed = times.missed
                let added = try await common.withStore { store in try await store.schedules.put(schedule) }
                for file in parsed.sources.compactMap(\.file) {
                    Terminal.error(
                        "worker: Each run reads the list \(Terminal.safe(file)): start the worker with --lists and the folder of "
                            + "this list.")
                }
                if json {
                    return Terminal.print(
                        try Output.json(Added(name: name, isNew: added.isNew, nextDue: added.nextDue)))
                }
                let local = times.zone.text(ofMilliseconds: added.nextDue.milliseconds)
                Terminal.print("\(added.isNew ? "added" : "replaced") \(Terminal.safe(name)); next run at \(local)")
            }
        }

        private struct Added: Encodable {
            let name: String
            let isNew: Bool
            let nextDue: WallTime
        }

        private static func absolute(_ path: String) -> String {
            guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
            defer { free(current) }
            return FilePath(String(cString: current)).appending(path).lexicallyNormalized().string
        }
    }

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists the schedules, with the next run and the result of the last run of each.",
            discussion: """
                EXAMPLES:
                  worker schedule list
                  worker schedule list --json
                """,
        )
        @OptionGroup var common: CommonOptions
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                let schedules = try await common.readingStore { store in try await store.schedules.all() }
                if json { return Terminal.print(try Output.json(schedules)) }
                guard !schedules.isEmpty else {
                    return Terminal.print("No schedules. Add one with: worker schedule add MANIFEST")
                }
                let rows = schedules.map { schedule in
                    [
                        Terminal.safe(schedule.name), Terminal.safe(schedule.cron), Terminal.safe(schedule.timeZone),
                        Self.next(schedule), Self.last(schedule),
                    ]
                }
                Output.table(["name", "times", "time zone", "next run", "last run"], rows).forEach(Terminal.print)
            }
        }

        private static func next(_ schedule: ScheduleRecord) -> String {
            if schedule.paused { return "paused" }
            if let error = schedule.error { return Terminal.safe(error) }
            return schedule.startsAt.map { text(of: $0, schedule) } ?? "when a worker runs"
        }

        private static func text(of time: WallTime, _ schedule: ScheduleRecord) -> String {
            // Best effort: without the zone's data on this machine the time is shown in UTC.
            let zone = try? ScheduleZone(named: schedule.timeZone)
            return zone?.text(ofMilliseconds: time.milliseconds) ?? Output.time(time)
        }

        private static func last(_ schedule: ScheduleRecord) -> String {
            guard let last = schedule.last else { return "" }
            let job = last.job.map { " job \($0)" } ?? ""
            let reason = last.message.map { ": \(Terminal.safe($0))" } ?? ""
            return "\(text(of: last.dueAt, schedule)) \(last.outcome ?? "being enqueued")\(job)\(reason)"
        }
    }

    struct Remove: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "remove",
            abstract: "Removes schedules. Their jobs stay.",
            discussion: """
                EXAMPLES:
                  worker schedule remove catalogue
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "Names of schedules.") var names: [String]

        func run() async throws {
            try await each(names, common, "removed") { store, name in try await store.schedules.remove(name) }
        }
    }

    struct Pause: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "pause",
            abstract: "Pauses schedules. Runs that are due in the meantime are skipped.",
            discussion: """
                EXAMPLES:
                  worker schedule pause catalogue
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "Names of schedules.") var names: [String]

        func run() async throws {
            try await each(names, common, "paused") { store, name in try await store.schedules.setPaused(name, true) }
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "resume",
            abstract: "Resumes paused schedules, from their next time on.",
            discussion: """
                EXAMPLES:
                  worker schedule resume catalogue
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "Names of schedules.") var names: [String]

        func run() async throws {
            try await each(names, common, "resumed") { store, name in try await store.schedules.setPaused(name, false) }
        }
    }

    struct Run: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "run",
            abstract: "Enqueues a schedule's manifest now; its times do not change.",
            discussion: """
                Prints the job's number. The command reads the manifest's lists with the rights of its user. If the job \
                of an earlier run is unfinished, nothing is added.

                EXAMPLES:
                  worker schedule run catalogue
                """,
        )
        @OptionGroup var common: CommonOptions
        @Argument(help: "A schedule's name.") var name: String
        @Option(RunSettings.allowAddresses) var allowAddresses: [String] = []
        @Flag(help: "Print JSON.") var json = false

        func run() async throws {
            try await reportingErrors {
                try await common.withStore { store in
                    guard let run = try await store.schedules.takeNow(name) else {
                        Terminal.error("worker: \(try await unknown(name, in: store))")
                        throw ExitCode.notFound
                    }
                    // The manifest may name every file that this command's user may read.
                    let access = ListAccess(common: common, folder: "/", addresses: allowAddresses)
                    let job = ScheduledJob(run, access: access)
                    switch try await job.enqueue(in: store, tell: { Terminal.error("worker: \($0)") }).get() {
                    case .enqueued(let job): Terminal.print(json ? #"{"job":\#(job),"added":true}"# : "\(job)")
                    case .joined(let job):
                        Terminal.error("worker: Job \(job) of an earlier run is unfinished; nothing was added.")
                        Terminal.print(json ? #"{"job":\#(job),"added":false}"# : "\(job)")
                    case .lost:
                        throw WorkerError(.tryLater, "The schedule '\(name)' was removed while its lists were read.")
                    }
                }
            }
        }
    }
}

/// Changes schedules by their names; it reports one that does not exist, and changes the others.
private func each(
    _ names: [String], _ common: CommonOptions, _ verb: String,
    _ change: (JobStore, String) async throws -> Bool,
) async throws {
    try await reportingErrors {
        try await common.withStore { store in
            var code = ExitCode.success
            for name in names {
                if try await change(store, name) {
                    Terminal.print("\(verb) \(Terminal.safe(name))")
                } else {
                    Terminal.error("worker: \(try await unknown(name, in: store))")
                    code = .notFound
                }
            }
            guard code == .success else { throw code }
        }
    }
}

private func unknown(_ name: String, in store: JobStore) async throws -> String {
    let names = try await store.schedules.all().map(\.name)
    return "There is no schedule '\(Terminal.safe(name))'.\(NearestWord.question(name, among: names)) "
        + "See: worker schedule list"
}

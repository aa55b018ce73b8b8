import ArgumentParser
import ContentCache
import Jobs
import PrefetchWorker

struct DatabaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "db", abstract: "Backs up the database, rebuilds a damaged one, and moves it to PostgreSQL.",
        discussion: """
            EXAMPLES:
              worker db backup copies/worker.db
              worker db rebuild --dry-run
              worker db move postgres://worker@db.example.com/worker
            """,
        subcommands: [DatabaseBackupCommand.self, DatabaseRebuildCommand.self, DatabaseMoveCommand.self])
}

struct DatabaseBackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Backs up the database while it is in use.",
        discussion: """
            The command writes a temporary file with the database's mode, checks it, and renames it. It replaces an older file, \
            and refuses a folder, a device or a FIFO. To restore the copy, stop all workers, remove worker.db-wal and \
            worker.db-shm, and put the copy in the place of worker.db. `worker run --backup-dir FOLDER` makes copies while \
            it runs.

            EXAMPLES:
              worker db backup /var/backups/worker.db
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The copy's path.") var path: String

    func run() async throws {
        try await reportingErrors {
            try await common.withStore { store in try await store.maintenance.backUp(to: path) }
            Terminal.print(path)
        }
    }
}

struct DatabaseRebuildCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rebuild",
        abstract: "Builds a new database from the readable rows of a damaged one and the files in the cache.",
        discussion: """
            First stop all workers and programs that write to the database. The old database is locked while it is read, and is kept under \
            another name; programs that still have it open get an error that tells them to open it again. Items whose result can't be trusted \
            any more are queued again; they find their files in the cache without the network.
            The cache must belong to the database. With --adopt the database takes over the cache of a database that is \
            lost; if there is no database, the command makes a new one. The adopted files stay until they expire; if a worker \
            downloads the same bytes, it uses the existing file. If the lost database turns up again, workers refuse it with this cache.
            Exit code 0 when nothing is lost, 74 when something is lost (the output says what), 73 when a newer version made the database or the cache belongs to another database, 75 when a worker or another program is using it.

            EXAMPLES:
              worker db rebuild
              worker db rebuild --yes
              worker db rebuild --adopt --db new.db --cache /var/cache/worker
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Use the cache although it belongs to another database, or to none.") var adopt = false
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Print JSON.") var json = false
    /// Given by this command to the process that it starts, which does the work.
    @Flag(help: .hidden) var inThisProcess = false
    /// In a second process, if the first one crashed.
    @Flag(help: .hidden) var onlyReading = false

    func run() async throws {
        try await reportingErrors {
            let path = try common.databasePath(common.settings())
            guard !PostgresURL.isPostgres(path) else {
                throw SettingsError("\(PostgresURL.shown(path)) is a PostgreSQL database: restore it with pg_restore.")
            }
            let cache = try common.openCache()
            if inThisProcess {
                RebuildProcess.endWithParent()
                return try await rebuild(path, cache)
            }
            let plan =
                "A new database replaces \(path); it is built from the readable rows and the files in \(cache.name); "
                + "the old one is kept under another name."
            guard try confirmation.allows(plan) else { return }
            let arguments = CommandLine.arguments.dropFirst() + ["--yes", "--in-this-process"]
            let code = try await RebuildProcess.run(
                [Array(arguments), arguments + ["--only-reading"]], database: path,
                tell: { Terminal.error("worker: \($0)") })
            guard code == 0 else { throw ExitCode(code) }
        }
    }

    private func rebuild(_ path: String, _ cache: ContentCache) async throws {
        let report = try await Rebuild(database: path, cache: cache).run(adopts: adopt, locksOld: !onlyReading)
        if json {
            Terminal.print(try Output.json(report))
        } else {
            Terminal.print(
                "\(Output.count(report.jobs, "job")) and \(Output.count(report.items, "item")) saved, \(report.requeued) of them queued again; "
                    + "\(report.blobs) files are in the index, \(report.lostFiles) were missing or damaged")
            if report.kept != "" { Terminal.print("the broken database is \(report.kept)") }
        }
        guard !report.isComplete else { return }
        for gap in report.unreadable { Terminal.error("worker: \(gap)") }
        Terminal.error(
            "worker: Not everything could be read. Restore a copy made by 'worker db backup', if there is one, or look "
                + "at 'worker status' and enqueue the missing URLs again; the damaged database is \(report.kept).")
        throw ExitCode.inputOutput
    }
}

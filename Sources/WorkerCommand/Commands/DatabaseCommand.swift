import ArgumentParser
import Jobs
import PrefetchWorker

struct DatabaseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "db", abstract: "Copies the database, and mends a broken one.",
        subcommands: [DatabaseBackupCommand.self, DatabaseRebuildCommand.self])
}

struct DatabaseBackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Copies the database while it is in use.",
        discussion: """
            The copy is checked before it gets its name, and an older file there is replaced. To go back to it, stop all
            workers, remove worker.db-wal and worker.db-shm, and put the copy in the place of worker.db.
            `worker run --backup-dir FOLDER` makes copies by itself.

            EXAMPLES:
              worker db backup /var/backups/worker.db
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The copy's path.") var path: String

    func run() async throws {
        try await reportingErrors {
            try await common.withStore { store in try await store.backUp(to: path) }
            Terminal.print(path)
        }
    }
}

struct DatabaseRebuildCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rebuild",
        abstract: "Makes a new database from what a broken one still yields and from the files in the cache.",
        discussion: """
            No worker may run meanwhile. The broken file is kept under another name. Items whose result can't be trusted any
            more are queued again; what is in the cache is read and found by them without the network.

            EXAMPLES:
              worker db rebuild
            """,
    )
    @OptionGroup var common: CommonOptions
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            let cache = try common.openCache()
            let report = try await Rebuild(database: common.databasePath(settings), cache: cache).run()
            if json { return Terminal.print(try Output.json(report)) }
            Terminal.print(
                "\(report.jobs) jobs and \(report.items) items saved, \(report.requeued) of them queued again; "
                    + "\(report.blobs) files are in the index, \(report.lostFiles) were missing or damaged")
            Terminal.print("the broken database is \(report.kept)")
            for gap in report.unreadable { Terminal.error("worker: \(gap)") }
        }
    }
}

import ArgumentParser
import Jobs
import PrefetchWorker

struct CacheUploadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload",
        abstract: "Copies a cache in a folder to a bucket.",
        discussion: """
            Stop the workers of the database first; files that they add meanwhile may be left out. If the upload is \
            stopped, the same command continues it. After the upload, use --cache s3://bucket/prefix and a new folder as \
            --cache-folder with every command. The old folder stays as it is.

            EXAMPLES:
              worker cache upload s3://pictures/shop
              worker cache upload s3://pictures/shop --db /var/lib/worker/worker.db --cache /var/cache/worker
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: ArgumentHelp("The bucket, and the prefix in it.", valueName: "s3://bucket/prefix")) var target:
        String
    @Flag(help: "Print JSON.") var json = false

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            let location = CacheLocation(target, try common.bucket(settings))
            guard location.isBucket else {
                throw SettingsError("The target is no bucket. Name it as in s3://bucket/prefix")
            }
            let line = Terminal.errorIsTerminal ? LiveDisplay() : nil
            let (upload, interruption) = try await stoppable(patience: .seconds(10)) { stop in
                try await common.withCache { store, cache in
                    try await CacheUpload.run(store: store, from: cache, to: location, stop: stop) { upload in
                        line?.draw("\(Output.count(upload.files, "file")) sent (\(Output.bytes(upload.bytes)))")
                    }
                }
            }
            line?.finish()
            if json { Terminal.print(try Output.json(upload)) } else { Terminal.print(summary(upload)) }
            if let interruption {
                Terminal.error("worker: Stopped. Run the same command again to continue.")
                throw interruption
            }
        }
    }

    private func summary(_ upload: CacheUpload) -> String {
        var text =
            "\(Output.count(upload.files, "file")) sent (\(Output.bytes(upload.bytes))), \(upload.present) were in the bucket already"
        if upload.missing > 0 {
            text += "; \(upload.missing) are missing in the folder or damaged, see: worker cache verify"
        }
        return text
    }
}

import Download
import Foundation
import ImageFiles
import Jobs
import Logging
import PrefetchHelper
import PrefetchWorker

/// A program that embeds the worker, with a transform and a format of its own.
///
///     SepiaWorker DATABASE CACHE VARIANTS URL…
///
/// makes the variants of the URLs, and prints a line for each rendition: its variant, format and file.
@main
struct SepiaWorker {
    static let extensions = ImagingExtensions(coders: [Farbfeld()], transforms: [Sepia()])

    @MainActor static func main() async throws {
        // Before anything else: the worker starts this same program again to handle pixels in.
        HelperMain.runIfHelper(extensions)
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 4 else { return print("usage: SepiaWorker DATABASE CACHE VARIANTS URL…") }
        var configuration = WorkerConfiguration(database: words[0], cache: words[1], transforms: 2)
        configuration.extensions = extensions
        configuration.loaders = [ColourLoader()]
        configuration.onTransfer = { report in
            guard report.stage == .ended else { return }
            FileHandle.standardError.write(
                Data("\(report.url): \(report.received) bytes, \(report.origin.rawValue)\n".utf8))
        }
        configuration.drains = true
        configuration.minimumFree = 0
        // Only because this is an example, which is tried with a server on the same machine.
        configuration.downloads.addresses = try AddressPolicy(allowing: ["loopback"])
        try await run(configuration, variants: words[2], urls: Array(words[3...]))
    }

    private static func run(_ configuration: WorkerConfiguration, variants: String, urls: [String]) async throws {
        let store = try JobStore(path: configuration.database)
        let job = try await store.queue.enqueue(NewJob(urls: urls, variants: variants))
        let worker = Worker(configuration, logger: Logger(label: "sepia"))
        _ = try await worker.run(stop: StopSignal())
        if let job {
            for try await event in store.events.events(job: job, follows: false) where event.event == .progress {
                FileHandle.standardError.write(Data("\(event.finished ?? 0) of \(event.total ?? 0) ended\n".utf8))
            }
            for row in try await store.reports.results(job: job, after: 0, limit: 1_000) {
                print(row.variant ?? row.failure ?? "", row.format ?? "", row.path ?? row.message ?? "")
            }
        }
        try await store.close()
    }
}

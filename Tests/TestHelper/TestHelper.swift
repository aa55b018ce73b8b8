import Glibc
import ImageFiles
import Jobs
import PrefetchHelper
import PrefetchWorker

/// A helper with transforms that misbehave, for tests.
@main
struct TestHelper {
    @MainActor static func main() async throws {
        HelperMain.runIfHelper(ImagingExtensions(transforms: [Crash(), Refusal(), Spin()]))
        let words = CommandLine.arguments
        if words.count == 4, words[1] == "commit", let seconds = Double(words[3]) {
            try await commit(to: words[2], seconds: seconds)
        }
        if words.count == 5, words[1] == "queue", let group = Int(words[3]), let seconds = Double(words[4]) {
            let store = try JobStore(path: words[2])
            try await QueueBench(store: store, group: group, limit: .seconds(seconds)).run()
            try await store.close()
        }
    }

    /// Commits small transactions and checkpoints, and prints what was acknowledged.
    private static func commit(to database: String, seconds: Double) async throws {
        let store = try JobStore(path: database)
        let end = ContinuousClock.now + .seconds(seconds)
        var count = 0
        while ContinuousClock.now < end {
            let url = "https://commits.example/\(getpid())/\(count)"
            guard let job = try await store.queue.enqueue(NewJob(urls: [url])) else { continue }
            print("\(job) \(url)")
            count += 1
            if count % 5 == 0 { try await store.maintenance.checkpoint(threshold: 0) }
        }
        try await store.close()
    }
}

struct Crash: ImageTransform {
    let name = "crash"
    let version = "1"

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage { abort() }
}

struct Refusal: ImageTransform {
    let name = "refusal"
    let version = "1"

    struct No: Error, CustomStringConvertible { let description: String }

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage {
        throw No(description: "no \(argument) today")
    }
}

/// Keeps a processor busy for so many milliseconds.
struct Spin: ImageTransform {
    let name = "spin"
    let version = "1"

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage {
        let end = ContinuousClock.now + .milliseconds(Int(argument) ?? 0)
        while ContinuousClock.now < end {}
        return image
    }
}

internal import ContentCache
internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import Imaging
internal import Jobs
internal import Logging
internal import Subprocess
internal import SystemPackage

/// How helper processes are started and bounded.
public struct HelperConfiguration: Sendable {
    /// How many run at once; one for each core is what was measured to be fastest.
    public var count: Int
    /// The program, and the arguments that make it call `HelperMain.run()`.
    public var executable: String
    public var arguments: [String]
    /// CPU seconds for one image, enforced by the kernel.
    public var processorSeconds: Int = 30
    /// Wall-clock seconds for one image, after which its helper is killed.
    public var wallSeconds: Int = 60

    public init(count: Int, executable: String = "/proc/self/exe", arguments: [String] = ["helper"]) {
        self.count = count
        self.executable = executable
        self.arguments = arguments
    }
}

/// Helper processes that decode, transform and encode, each one image at a time.
///
/// A decoder that crashes or runs away costs one image and one helper: the image is tried once more in a fresh helper,
/// since the crash may have been somebody's `kill`, and then fails as `decoder-crash`.
final class HelperPool: Sendable {
    let configuration: HelperConfiguration
    let limits: ImageLimits
    private let cache: ContentCache
    private let logger: Logger
    private let queue = WorkQueue<HelperWork>()
    private let results = DispatchQueue(label: "helper.results")

    init(configuration: HelperConfiguration, limits: ImageLimits, cache: ContentCache, logger: Logger) {
        self.configuration = configuration
        self.limits = limits
        self.cache = cache
        self.logger = logger
    }

    /// Makes every variant of a source, in the order given.
    func transform(_ source: BlobFile, into variants: [VariantSpec]) async -> HelperOutcome {
        await withCheckedContinuation { continuation in
            let work = HelperWork(source: source, variants: variants, answer: continuation)
            if !queue.put(work) { continuation.resume(returning: .stopped) }
        }
    }

    /// Runs the helpers until `close()`, and returns when the last of them has ended.
    func run() async {
        await withTaskGroup { group in
            for _ in 0..<configuration.count {
                group.addTask { await self.serve() }
            }
        }
    }

    /// Images already waiting are still done; then the helpers end.
    func close() { queue.close() }

    /// One place in the pool: a helper is started when the first image comes, and replaced when it dies.
    private func serve() async {
        let thread = DispatchQueue(label: "helper")
        var crashed: HelperWork?
        while let first = await next(after: crashed) {
            crashed = nil
            do {
                crashed = try await withHelper { socket, kill in
                    guard await self.isReady(socket, on: thread) else {
                        kill()
                        throw HelperNotReady()
                    }
                    return await self.feed(first, to: socket, on: thread, kill: kill)
                }
            } catch {
                logger.error("A helper can't be started.", metadata: ["error": "\(error)"])
                first.answer.resume(returning: .unavailable("A helper process can't be started: \(error)"))
                // Not in a hurry: whatever is wrong (memory, processes) will not be better in a millisecond.
                try? await Task.sleep(for: .seconds(1))
            }
        }
    }

    /// A helper that ends before its first word is no image's fault: a library is missing, or memory.
    private func isReady(_ socket: DescriptorSocket, on thread: DispatchQueue) async -> Bool {
        await withCheckedContinuation { continuation in
            thread.async {
                // Whatever goes wrong here, the helper is of no use.
                let isThere = (try? socket.wait(milliseconds: 30_000)) ?? false
                let word = isThere ? try? socket.receive() : nil
                continuation.resume(returning: word?.bytes == HelperMain.ready)
            }
        }
    }

    private func next(after crashed: HelperWork?) async -> HelperWork? {
        if let crashed { return crashed }
        return await queue.next()
    }

    /// - Returns: the image that the helper died of, if it is to be tried again.
    private func feed(
        _ first: HelperWork, to socket: DescriptorSocket, on thread: DispatchQueue, kill: () -> Void,
    ) async -> HelperWork? {
        var current: HelperWork? = first
        while let work = current {
            let exchange = await self.exchange(work, over: socket, on: thread)
            switch exchange {
            case .answered(let reply, let files):
                // The helper gets its next image while this one's files are read.
                results.async { [cache] in work.answer.resume(returning: work.outcome(of: reply, files, in: cache)) }
            case .disk(let error):
                work.answer.resume(returning: .disk(error))
            case .crashed where work.crashes == 0:
                logger.warning("A helper died; its image is tried once more.")
                return work.afterCrash()
            case .crashed:
                work.answer.resume(returning: .failed(.decoderCrash, "The decoder crashed twice on this image."))
                return nil
            case .timedOut:
                kill()
                let message = "The decoder took longer than \(configuration.wallSeconds) s on this image."
                work.answer.resume(returning: .failed(.decoderCrash, message))
                return nil
            }
            current = await queue.next()
        }
        return nil
    }

    private func exchange(
        _ work: HelperWork, over socket: DescriptorSocket, on thread: DispatchQueue,
    ) async -> HelperExchange {
        // Waiting for a helper blocks, so it happens on this place's own thread.
        await withCheckedContinuation { continuation in
            thread.async { [self] in
                continuation.resume(
                    returning: work.exchange(
                        over: socket, cache: cache, limits: limits, configuration: configuration))
            }
        }
    }

    /// One image after the other needs the same few large buffers: kept, they cost a fifth of the page faults that
    /// returning them to the kernel each time does. (mallopt(3), in its environment form.)
    private static let allocation: [Environment.Key: String?] = [
        "MALLOC_MMAP_THRESHOLD_": "67108864", "MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_TOP_PAD_": "16777216",
    ]

    private func withHelper<R: Sendable>(
        _ body: (DescriptorSocket, () -> Void) async throws -> R
    ) async throws -> R {
        let (ours, theirs) = try DescriptorSocket.pair()
        let socket = DescriptorSocket(owning: ours)
        var platform = PlatformOptions()
        // Ctrl-C in a terminal reaches the whole foreground group; helpers stop when the worker says so.
        platform.processGroupID = 0
        let result = try await Subprocess.run(
            .path(FilePath(configuration.executable)), arguments: Arguments(configuration.arguments),
            environment: .inherit.updating(Self.allocation), platformOptions: platform,
            input: .fileDescriptor(theirs, closeAfterSpawningProcess: true),
            output: .discarded,
            error: .fileDescriptor(.standardError, closeAfterSpawningProcess: false),
        ) { execution in
            // The end of the socket is what tells a helper to go.
            defer { shutdown(socket.descriptor.rawValue, Int32(SHUT_RDWR)) }
            return try await body(socket) {
                // It may have died by itself meanwhile.
                try? execution.send(signal: .kill)
            }
        }
        return result.closureResult
    }
}

/// A helper ended or fell silent before it could take an image.
private struct HelperNotReady: Error, CustomStringConvertible {
    var description: String { "it ended before it was ready; 'worker doctor' may tell why" }
}

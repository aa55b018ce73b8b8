internal import ContentCache
internal import Core
internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import Logging
internal import Subprocess
internal import Synchronization
internal import SystemPackage

/// A running helper process.
struct RunningHelper {
    let process: pid_t
    let socket: DescriptorSocket
    /// Kills it.
    let kill: () -> Void
}

extension HelperPool {
    var counts: HelperCounts {
        let (running, started) = connections.counts
        var counts = HelperCounts()
        counts.running = Int64(running)
        counts.busy = Int64(min(busy.load(ordering: .relaxed), running))
        counts.waiting = Int64(queue.count)
        counts.started = started
        counts.died = deaths.load(ordering: .relaxed)
        return counts
    }

    /// Renders the visible part of the first `count` bytes of a picture.
    ///
    /// - Returns: nil if nothing can be seen yet, or if it fails for any reason.
    func preview(_ source: BlobFile, count: Int) async -> (PreviewReport, image: [UInt8])? {
        let outcome = await withCheckedContinuation { continuation in
            var work = HelperWork(source: source, variants: [], assets: [:], answer: continuation)
            work.preview = count
            if !put(work) { continuation.resume(returning: .failure(.stopped())) }
        }
        guard case .success(.preview(let report?, let file)) = outcome else { return nil }
        // Best effort: a preview that cannot be read is skipped.
        guard let image = try? file.contents() else { return nil }
        return (report, image)
    }

    /// Starts a helper and checks that it has the protections that the configuration requires.
    ///
    /// - Throws: code `unavailable` if it lacks one, or if no helper can be started.
    func checkSandbox() async throws(WorkerError) {
        do {
            try await withHelper { helper in
                try await self.greet(helper, on: DispatchQueue(label: "helper"))
            }
        } catch {
            throw WorkerError(.unavailable, "The required sandbox is not available: \(error)")
        }
    }

    /// Consecutive images need the same few large buffers. Keeping them causes a fifth of the page faults that
    /// returning them to the kernel each time does. (mallopt(3), as environment variables.)
    private static let allocation: [Environment.Key: String?] = [
        "MALLOC_MMAP_THRESHOLD_": "67108864", "MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_TOP_PAD_": "16777216",
    ]

    /// The changes to the worker's own environment: malloc's settings are added. The worker's settings, its bucket's
    /// keys and libpq's passwords are removed, since they may be secrets.
    private static let environment: [Environment.Key: String?] = {
        let names = ProcessInfo.processInfo.environment.keys.filter {
            $0.hasPrefix("WORKER_") || $0.hasPrefix("AWS_") || $0.hasPrefix("PG")
        }
        return names.reduce(into: allocation) { $0[Environment.Key(stringLiteral: $1)] = .some(nil) }
    }()

    /// Starts a helper, passes it to `body`, and waits for its end.
    func withHelper<R: Sendable>(_ body: (RunningHelper) async throws -> R) async throws -> R {
        // The helper inherits the mark as its standard output: it prints nothing, and the descriptor is read-only.
        guard let mark = connections.mark.descriptor else { return try await start(output: .discarded, body) }
        return try await start(output: .fileDescriptor(mark, closeAfterSpawningProcess: false), body)
    }

    private func start<R: Sendable, Output: OutputProtocol>(
        output: Output, _ body: (RunningHelper) async throws -> R,
    ) async throws -> R where Output.OutputType == Void {
        let (ours, theirs) = try DescriptorSocket.pair()
        let socket = DescriptorSocket(owning: ours)
        var platform = PlatformOptions()
        // Ctrl-C in a terminal signals the whole foreground group, but the worker decides when helpers end.
        platform.processGroupID = 0
        let result = try await Subprocess.run(
            .path(FilePath(configuration.executable)), arguments: Arguments(configuration.arguments),
            environment: .inherit.updating(Self.environment), platformOptions: platform,
            input: .fileDescriptor(theirs, closeAfterSpawningProcess: true),
            output: output,
            error: .fileDescriptor(.standardError, closeAfterSpawningProcess: false),
        ) { execution in
            // A helper ends when its socket closes.
            defer { shutdown(socket.descriptor.rawValue, Int32(SHUT_RDWR)) }
            let process = execution.processIdentifier.value
            return try await body(
                RunningHelper(process: process, socket: socket) {
                    // Best effort: it may have died meanwhile.
                    try? execution.send(signal: .kill)
                })
        }
        return result.closureResult
    }

    /// Waits until a helper reports ready, and checks which protections it reported.
    ///
    /// If a helper ends before that, no image is at fault: a library or memory is missing.
    func greet(_ helper: RunningHelper, on thread: DispatchQueue) async throws {
        let protections: HelperProtections
        do {
            protections = try await firstWord(of: helper, on: thread)
        } catch {
            helper.kill()
            throw error
        }
        guard program.isInUse(protections.coder) else {
            throw HelperRefused(
                reason: "its program or its image libraries were replaced while the worker runs; restart the worker")
        }
        guard !protections.isComplete else { return }
        let reasons = protections.complaints.joined(separator: " ")
        if configuration.requiresSandbox { throw HelperRefused(reason: "it is not fully sandboxed. \(reasons)") }
        let isFirst = hasWarned.withLock { hasWarned in
            defer { hasWarned = true }
            return !hasWarned
        }
        if isFirst { logger.warning("Images are decoded without a full sandbox. \(reasons)") }
    }

    private func firstWord(of helper: RunningHelper, on thread: DispatchQueue) async throws -> HelperProtections {
        try await withCheckedThrowingContinuation { continuation in
            thread.async { [socket = helper.socket] in
                continuation.resume(with: Result { try Self.firstWord(from: socket) })
            }
        }
    }

    private static func firstWord(from socket: DescriptorSocket) throws -> HelperProtections {
        guard try socket.wait(milliseconds: 30_000) else {
            throw HelperRefused(reason: "it was not ready within 30 s")
        }
        guard let word = try socket.receive() else {
            throw HelperRefused(reason: "it ended before it was ready; 'worker doctor' may tell why")
        }
        do {
            return try JSONDecoder().decode(HelperProtections.self, from: Data(word.bytes))
        } catch {
            throw HelperRefused(reason: "it is of another version than the worker; install both together")
        }
    }
}

/// A helper that is not ready for images.
struct HelperRefused: Error, CustomStringConvertible {
    let reason: String

    var description: String { reason }
}

extension DescriptorSocket {
    /// - Returns: whether the helper was still running to receive a request.
    /// - Throws: `disk` for a shortage of this machine, of which no image is guilty.
    func reaches(_ request: [UInt8], _ descriptors: [FileDescriptor]) throws(CacheError) -> Bool {
        do throws(Errno) {
            try send(request, descriptors)
            return true
        } catch {
            if error == .brokenPipe || error == .connectionReset || error == .socketNotConnected { return false }
            throw CacheError(.disk, "A request can't be sent to a helper: \(error).")
        }
    }
}

extension HelperPool {
    /// - Throws: `transform` if a request needs more descriptors than a message takes.
    static func check(files: Int, assets: Int) throws(Failure) {
        guard 1 + files + assets <= DescriptorSocket.maxDescriptors else {
            throw Failure(
                .transform,
                "The job has \(files) variants with \(assets) other pictures, and a helper takes "
                    + "\(DescriptorSocket.maxDescriptors - 1) in all; make two jobs of it.")
        }
    }
}

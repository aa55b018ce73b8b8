internal import ContentCache
internal import Core
internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import Imaging
internal import Logging
internal import Subprocess
internal import Synchronization
internal import SystemPackage

/// A helper process, for as long as there is work for it.
struct RunningHelper {
    let process: pid_t
    let socket: DescriptorSocket
    /// Ends it at once.
    let kill: () -> Void
}

extension HelperPool {
    /// Renders the visible part of the first `count` bytes of a picture.
    ///
    /// - Returns: nil where nothing is known yet, and where it fails for whatever reason.
    func preview(_ source: BlobFile, count: Int) async -> (PreviewReport, image: [UInt8])? {
        let outcome = await withCheckedContinuation { continuation in
            var work = HelperWork(source: source, variants: [], assets: [:], answer: continuation)
            work.preview = count
            if !put(work) { continuation.resume(returning: .failure(.stopped())) }
        }
        guard case .success(.preview(let report?, let file)) = outcome else { return nil }
        // A preview that can't be read is missed, and that is all.
        guard let image = try? file.contents() else { return nil }
        return (report, image)
    }

    /// Whether a helper of this configuration would be guarded as it requires, found out by starting one.
    ///
    /// - Throws: code `unavailable` when it wouldn't, or when none can be started.
    func checkSandbox() async throws(WorkerError) {
        do {
            try await withHelper { helper in
                try await self.greet(helper, on: DispatchQueue(label: "helper"))
            }
        } catch {
            throw WorkerError(.unavailable, "The sandbox that is required can't be had: \(error)")
        }
    }

    /// One image after the other needs the same few large buffers: kept, they cost a fifth of the page faults that
    /// returning them to the kernel each time does. (mallopt(3), in its environment form.)
    private static let allocation: [Environment.Key: String?] = [
        "MALLOC_MMAP_THRESHOLD_": "67108864", "MALLOC_TRIM_THRESHOLD_": "67108864", "MALLOC_TOP_PAD_": "16777216",
    ]

    /// Lends a new helper, and waits for its end.
    func withHelper<R: Sendable>(_ body: (RunningHelper) async throws -> R) async throws -> R {
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
            let process = execution.processIdentifier.value
            return try await body(
                RunningHelper(process: process, socket: socket) {
                    // It may have died by itself meanwhile.
                    try? execution.send(signal: .kill)
                })
        }
        return result.closureResult
    }

    /// Waits for a helper's first word, and takes it at that.
    ///
    /// A helper that ends before its first word is no image's fault: a library is missing, or memory.
    func greet(_ helper: RunningHelper, on thread: DispatchQueue) async throws {
        guard let protections = await firstWord(of: helper, on: thread) else {
            helper.kill()
            throw HelperRefused(reason: "it ended before it was ready; 'worker doctor' may tell why")
        }
        guard !protections.isComplete else { return }
        let reasons = protections.complaints.joined(separator: " ")
        if configuration.requiresSandbox { throw HelperRefused(reason: "it is not fully guarded. \(reasons)") }
        let isFirst = hasWarned.withLock { hasWarned in
            defer { hasWarned = true }
            return !hasWarned
        }
        if isFirst { logger.warning("Images are decoded without a full sandbox. \(reasons)") }
    }

    private func firstWord(of helper: RunningHelper, on thread: DispatchQueue) async -> HelperProtections? {
        await withCheckedContinuation { continuation in
            thread.async { [socket = helper.socket] in
                // Whatever goes wrong here, the helper is of no use.
                let isThere = (try? socket.wait(milliseconds: 30_000)) ?? false
                let word = isThere ? try? socket.receive() : nil
                let protections = word.flatMap {
                    try? JSONDecoder().decode(HelperProtections.self, from: Data($0.bytes))
                }
                continuation.resume(returning: protections)
            }
        }
    }
}

/// A helper that can't be given an image.
private struct HelperRefused: Error, CustomStringConvertible {
    let reason: String

    var description: String { reason }
}

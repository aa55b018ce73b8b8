internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import Logging
internal import Subprocess
internal import Synchronization
internal import SystemPackage

/// A helper process, as long as somebody has work for it.
struct RunningHelper {
    let process: pid_t
    let socket: DescriptorSocket
    /// Ends it at once.
    let kill: () -> Void
}

extension HelperPool {
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

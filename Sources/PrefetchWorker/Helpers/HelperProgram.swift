internal import Core
internal import FoundationEssentials
internal import Glibc
internal import HelperProtocol
internal import Subprocess
internal import Synchronization
internal import SystemPackage

/// The program of the helpers, and its description of its libraries.
///
/// A run asks for it once, when it needs the first rendition's identity; a run without variants never asks.
final class HelperProgram: Sendable {
    private let configuration: HelperConfiguration
    private let known = Mutex<Task<HelperDescription, any Error>?>(nil)
    private let coderInUse = Mutex<String?>(nil)

    init(_ configuration: HelperConfiguration) { self.configuration = configuration }

    /// - Throws: class `disk-error` if the program cannot be started, since no item is at fault.
    func description() async throws(Failure) -> HelperDescription {
        let task = known.withLock { known in
            if let known { return known }
            let task = Task { [configuration] in try await Self.ask(configuration, "--describe") }
            known = task
            return task
        }
        do {
            let description = try await task.value
            _ = isInUse(description.coder)
            return description
        } catch {
            // The next item asks again.
            known.withLock { $0 = nil }
            throw Self.failure(error, configuration)
        }
    }

    /// Notes the versions that a helper has started with.
    ///
    /// - Returns: false if the run began with other versions: the program or its libraries were replaced meanwhile, and
    ///   the identities of renditions would name the wrong versions.
    func isInUse(_ coder: String?) -> Bool {
        guard let coder else { return true }
        return coderInUse.withLock { known in
            known = known ?? coder
            return known == coder
        }
    }

    /// The description, including the formats that were tested and work on this machine.
    static func tried(_ configuration: HelperConfiguration) async throws(Failure) -> HelperDescription {
        do {
            return try await ask(configuration, "--describe", "--formats")
        } catch {
            throw failure(error, configuration)
        }
    }

    /// Why no helper could be started, as a failure of class `disk-error`, since no item is at fault.
    static func failure(_ error: any Error, _ configuration: HelperConfiguration) -> Failure {
        let reason =
            access(configuration.executable, F_OK) == 0 || errno != ENOENT
            ? reason(ofStart: error) : "there is no program \(configuration.executable), which is installed with worker"
        return Failure(.diskError, "A helper process can't be started: \(reason)")
    }

    /// How long the program may take to answer.
    private static let patience = Duration.seconds(30)

    private static func ask(
        _ configuration: HelperConfiguration, _ words: String...,
    ) async throws -> HelperDescription {
        try await withThrowingTaskGroup { group in
            group.addTask {
                let result = try await Subprocess.run(
                    .path(FilePath(configuration.executable)), arguments: Arguments(configuration.arguments + words),
                    output: .bytes(limit: 1 << 20), error: .discarded)
                do {
                    return try JSONDecoder().decode(HelperDescription.self, from: Data(result.standardOutput))
                } catch {
                    throw HelperRefused(
                        reason: "it ended without a report (\(result.terminationStatus)); run "
                            + "\(configuration.executable) --describe to see why")
                }
            }
            group.addTask {
                try await Task.sleep(for: patience)
                throw HelperRefused(reason: "it did not report its versions within \(patience)")
            }
            defer { group.cancelAll() }
            // There are two tasks, so there is a first result.
            guard let description = try await group.next() else { throw CancellationError() }
            return description
        }
    }
}

extension HelperConfiguration {
    /// The names under which an installation has the program `worker-helper`, seen from the folder of `worker`.
    private static let places = [
        "worker-helper", "../libexec/prefetch-worker/worker-helper", "../lib/prefetch-worker/worker-helper",
    ]

    /// The helpers of the program `worker`: the program `worker-helper` that was installed with it.
    ///
    /// A missing one is reported when a helper is started.
    public static func installed(count: Int) -> HelperConfiguration {
        let folder = ownProgram.removingLastComponent()
        let found = places.map { folder.appending($0).lexicallyNormalized().string }
        let program = found.first { access($0, X_OK) == 0 } ?? found[0]
        return HelperConfiguration(count: count, executable: program, arguments: [])
    }

    /// The path of this process's program.
    private static var ownProgram: FilePath {
        var buffer = [CChar](repeating: 0, count: 4_096)
        let length = readlink("/proc/self/exe", &buffer, buffer.count)
        return FilePath(String(decoding: buffer.prefix(max(0, length)).map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
}

internal import ContentCache
internal import Core
internal import Glibc
internal import Jobs
internal import Subprocess
internal import SystemPackage

/// One run of a command. However it ends, no process of its process group keeps running.
struct CommandRun: Sendable {
    let command: InstalledCommand
    let limits: CommandLimits
    /// Whether the caller needs the whole output, also if the first line reports an error.
    var isDialogue = false

    /// - Parameter input: the command's input; read from its start.
    /// - Returns: the picture in the command's answer.
    func run(_ input: BlobFile) async throws(Failure) -> [UInt8] {
        let outcome = await withTaskGroup(of: Result<[UInt8], Failure>?.self) { group in
            group.addTask { await answer(to: input) }
            group.addTask {
                // Best effort: the group cancels this sleep if the command ends first.
                try? await Task.sleep(for: limits.time)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            await group.waitForAll()
            return first
        }
        if Task.isCancelled { throw .stopped() }
        guard let outcome else { throw failure("took longer than \(limits.time.milliseconds) ms") }
        return try outcome.get()
    }

    private func answer(to input: BlobFile) async -> Result<[UInt8], Failure> {
        do {
            let result = try await Subprocess.run(
                .path(command.path), environment: .custom(Self.environment), workingDirectory: "/",
                platformOptions: Self.platform,
                input: .fileDescriptor(input.descriptor, closeAfterSpawningProcess: false),
                output: .sequence, error: .sequence,
            ) { execution in
                let end: @Sendable () -> Void = {
                    // Best effort: the command may have ended meanwhile.
                    try? execution.send(signal: .kill, toProcessGroup: true)
                }
                return await withTaskCancellationHandler {
                    async let complaint = Self.read(execution.standardError, limit: 4_096, overflow: {})
                    let output = await Self.read(execution.standardOutput, limit: limits.bytes, overflow: end)
                    return (
                        output: output, complaint: await complaint, group: execution.processIdentifier.value
                    )
                } onCancel: {
                    end()
                }
            }
            withExtendedLifetime(input) {}
            let (output, complaint, group) = result.closureResult
            // Kills processes that the command left in the background; fails if there are none.
            kill(-group, SIGKILL)
            return Result { () throws(Failure) in
                try checked(output, Self.firstLine(complaint), result.terminationStatus)
            }
        } catch {
            if (error as? SubprocessError)?.underlyingError?.isShortage == true {
                return .failure(
                    Failure(.diskError, "The command '\(command.name)' can't be run: \(reason(ofStart: error))"))
            }
            return .failure(failure("can't be run: \(reason(ofStart: error))"))
        }
    }

    /// Contains nothing of the worker's own environment, which may hold secrets.
    static let environment: [Environment.Key: String] = [
        "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/",
    ]

    /// The command gets a process group of its own, so that its children are killed with it.
    static let platform = {
        var platform = PlatformOptions()
        platform.processGroupID = 0
        platform.teardownSequence = [
            .send(signal: .kill, toProcessGroup: true, allowedDurationToNextStep: .milliseconds(100))
        ]
        return platform
    }()

    /// - Returns: at most `limit` + 1 bytes; bytes after these are read and dropped.
    private static func read(
        _ pipe: SubprocessOutputSequence, limit: Int, overflow: () -> Void,
    ) async -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            for try await part in pipe where bytes.count <= limit {
                part.withUnsafeBytes { bytes.append(contentsOf: $0.prefix(limit + 1 - bytes.count)) }
                if bytes.count > limit { overflow() }
            }
        } catch {
            // A broken pipe ends the output; the exit status shows whether the command failed.
        }
        return bytes
    }

    private func checked(
        _ output: [UInt8], _ complaint: String, _ status: TerminationStatus,
    ) throws(Failure) -> [UInt8] {
        guard output.count <= limits.bytes else { throw failure("answered more than \(limits.bytes) bytes") }
        let answer = isDialogue ? CommandAnswer.picture(output) : CommandAnswer(output)
        if case .error(let text) = answer { throw failure("says: \(text)") }
        switch status {
        case .exited(0): break
        case .exited(let code): throw failure("ended with code \(code)\(complaint)")
        case .signaled(let signal): throw failure("was ended by signal \(signal)\(complaint)")
        }
        guard case .picture(let bytes) = answer else {
            throw failure("must answer with a line {\"ok\":true} and a picture, and didn't\(complaint)")
        }
        return bytes
    }

    private static func firstLine(_ bytes: [UInt8]) -> String {
        let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return line.isEmpty ? "" : ": \(line.prefix(300))"
    }

    private func failure(_ what: String) -> Failure { Failure(.delegate, "The command '\(command.name)' \(what)") }
}

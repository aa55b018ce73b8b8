internal import CDescriptorPassing
internal import Core
internal import Glibc
internal import Subprocess
internal import SystemPackage

/// The program that gets notices on its standard input.
struct NoticeCommand: Sendable {
    private let command: InstalledCommand
    private let limit: Duration

    /// - Throws: `usage` if there is no such program.
    init(_ path: String, limit: Duration) throws(WorkerError) {
        command = try InstalledCommand(TransformCommand(name: "notify", path: path, version: "1"))
        self.limit = limit
    }

    /// - Returns: why it failed, as a sentence; nil if it has taken the notice.
    func run(_ message: NoticeMessage) async -> String? {
        await withTaskGroup(of: String?.self) { group in
            group.addTask { await answer(to: message) }
            group.addTask {
                // Cancelled if the command ends first.
                try? await Task.sleep(for: limit)
                return "The command took longer than \(limit.milliseconds) ms."
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            await group.waitForAll()
            return first
        }
    }

    private func answer(to message: NoticeMessage) async -> String? {
        do {
            // Not a pipe: a command that does not read it all would end this program with SIGPIPE.
            let input = try NoticeFile.make(message.body)
            defer { try? input.close() }  // Best effort: it was only read.
            let result = try await Subprocess.run(
                .path(command.path), environment: .custom(CommandRun.environment), workingDirectory: "/",
                platformOptions: CommandRun.platform,
                input: .fileDescriptor(input, closeAfterSpawningProcess: false), output: .discarded,
                error: .string(limit: 1 << 20))
            switch result.terminationStatus {
            case .exited(0): return nil
            case .exited(let code):
                let line = result.standardError.prefix { !$0.isNewline }
                return "The command ended with code \(code)\(line.isEmpty ? "." : ": \(line.prefix(300))")"
            case .signaled(let signal): return "The command was ended by signal \(signal)."
            }
        } catch {
            return "The command can't be run: \(reason(ofStart: error))"
        }
    }
}

/// Files in memory.
enum NoticeFile {
    /// - Parameter bytes: the content. The file's offset is 0.
    static func make(_ bytes: [UInt8] = []) throws -> FileDescriptor {
        let raw = pw_memory_file("notice")
        guard raw >= 0 else { throw Errno(rawValue: errno) }
        let file = FileDescriptor(rawValue: raw)
        guard !bytes.isEmpty else { return file }
        do {
            try file.writeAll(bytes)
            try file.seek(offset: 0, from: .start)
            return file
        } catch {
            try? file.close()  // Best effort: the first error is the one to report.
            throw error
        }
    }
}

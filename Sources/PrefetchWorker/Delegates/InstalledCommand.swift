internal import ContentCache
internal import Core
internal import Glibc
internal import SystemPackage

/// A command whose program was found when the worker started.
struct InstalledCommand: Sendable {
    let name: String
    let path: FilePath
    let version: String

    /// - Throws: `usage` if there is no such program.
    init(_ command: TransformCommand) throws(WorkerError) {
        name = command.name
        path = try Self.absolute(command)
        if let version = command.version {
            self.version = version
            return
        }
        do {
            let file = BlobFile(owning: try FileDescriptor.open(path, .readOnly, options: .closeOnExec))
            version = "sha256-" + (try PendingBlob(reading: file).hash.hex)
        } catch {
            throw WorkerError(
                .usage,
                "The version of the command '\(name)' can't be computed: \(error). Give it one: \(name)=\(path)@1")
        }
    }

    private static func absolute(_ command: TransformCommand) throws(WorkerError) -> FilePath {
        var status = stat()
        guard
            let path = realpath(command.path, nil).map({ start in
                defer { free(start) }
                return String(cString: start)
            }), stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, access(path, X_OK) == 0
        else {
            throw WorkerError(
                .usage, "The command '\(command.name)' can't be run: there is no executable file '\(command.path)'.")
        }
        return FilePath(path)
    }
}

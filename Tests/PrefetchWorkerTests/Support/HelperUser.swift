import Glibc
import SystemPackage
import TestSupport

/// Who runs a helper.
enum HelperUser: String, CaseIterable, Sendable {
    case ourselves
    /// The user `nobody`, which only root can become.
    case nobody

    static var possible: [HelperUser] { geteuid() == 0 ? allCases : [.ourselves] }

    /// The program and arguments by which this user starts a program.
    func command(_ program: String, _ arguments: [String]) -> (program: String, arguments: [String]) {
        switch self {
        case .ourselves: (program, arguments)
        case .nobody:
            (
                ChildProcess.find("setpriv") ?? "setpriv",
                ["--reuid=65534", "--regid=65534", "--clear-groups", program] + arguments
            )
        }
    }

    /// The program that was built, where anybody may read it: the folder we build in may be ours alone.
    static func copyOfHelper(in folder: FilePath) throws -> String {
        let copy = folder.appending("worker-helper").string
        guard try ChildProcess.run("cp", [Workplace.executable.string, copy]) == 0,
            chmod(folder.string, 0o755) == 0, chmod(copy, 0o755) == 0
        else { throw Errno.permissionDenied }
        return copy
    }
}

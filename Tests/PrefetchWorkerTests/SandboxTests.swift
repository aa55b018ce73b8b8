import Core
import FoundationEssentials
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import HelperProtocol
@testable import PrefetchHelper
@testable import PrefetchWorker

/// Actions that are forbidden to a real helper, tried by the helper itself.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt)) struct SandboxTests {
    /// A helper's report on itself, made once for each user.
    private static let reports = Dictionary(
        uniqueKeysWithValues: HelperUser.possible.map { user in (user, Result { try report(as: user) }) })

    private static func report(
        as user: HelperUser = .ourselves, without calls: [String] = [],
    ) throws -> SandboxReport {
        try withTemporaryDirectory { folder in
            var command = (program: try HelperUser.copyOfHelper(in: folder), arguments: ["--test-sandbox"])
            if !calls.isEmpty {
                let unguarded = Unguarded.command(command.program, without: calls)
                command = (unguarded.program, unguarded.arguments + command.arguments)
            }
            let (program, arguments) = user.command(command.program, command.arguments)
            let output = folder.appending("report").string
            _ = try ChildProcess.run(program, arguments, files: ChildProcess.Files(output: output))
            return try JSONDecoder().decode(SandboxReport.self, from: Data(contents(of: output)))
        }
    }

    private static func contents(of path: String) throws -> [UInt8] {
        let file = try FileDescriptor.open(path, .readOnly)
        return try file.closeAfter {
            try [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }

    @Test(arguments: HelperUser.possible) func landlockAndSeccompAreBothActive(user: HelperUser) throws {
        let protections = try #require(Self.reports[user]).get().protections
        #expect(protections.isComplete)
        #expect(protections.complaints == [])
    }

    @Test(arguments: HelperUser.possible, ForbiddenAction.all.map { "\($0.layer.rawValue): \($0.name)" })
    func aForbiddenActionIsRefused(user: HelperUser, action: String) throws {
        let report = try #require(Self.reports[user]).get()
        let trial = report.trials.first { "\($0.layer.rawValue): \($0.action)" == action }
        guard let trial else {
            // Only a kernel that has less of Landlock leaves one out.
            #expect(report.protections.landlock < 6)
            return
        }
        #expect(trial.refused)
    }

    /// Otherwise the cases above would prove nothing.
    @Test(arguments: ["read a file", "list a folder", "create an unnamed file", "connect", "signal its worker"])
    func aForbiddenActionWorksWithoutASandbox(name: String) throws {
        let action = try #require(ForbiddenAction.all.first { $0.name == name })
        #expect(action.refusal() == nil)
    }

    @Test func everyVersionOfLandlockRestrictsTheRightsThatItKnows() {
        let rights = (1...7).map { Landlock.Rights(version: $0) }
        #expect(rights.map(\.fileSystem) == [0x1FFF, 0x3FFF, 0x7FFF, 0x7FFF, 0xFFFF, 0xFFFF, 0xFFFF])
        #expect(rights.map(\.network) == [0, 0, 0, 3, 3, 3, 3])
        #expect(rights.map(\.scopes) == [0, 0, 0, 0, 0, 3, 3])
    }

    @Test(.enabled(if: Unguarded.isPossible)) func aMissingLandlockIsReportedAndSeccompIsStillActive() throws {
        let report = try Self.report(without: ["landlock_create_ruleset"])
        #expect(report.protections.landlock == 0)
        #expect(report.protections.seccomp)
        #expect(report.protections.complaints.first == "Landlock is not available: Function not implemented.")
        #expect(report.leaks.map(\.action) == [])
        #expect(report.trials.contains { $0.layer == .seccomp })
    }

    @Test(.enabled(if: Unguarded.isPossible)) func aMissingSeccompIsReportedAndLandlockIsStillActive() throws {
        let report = try Self.report(without: ["seccomp"])
        #expect(report.protections.landlock > 0)
        #expect(!report.protections.seccomp)
        #expect(report.protections.complaints.count == 1)
        #expect(report.leaks.map(\.action) == [])
    }
}

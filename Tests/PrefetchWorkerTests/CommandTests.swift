import ContentCache
import Core
import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import PrefetchWorker
@testable import Variants

/// Programs of a few lines of shell, run as commands.
@Suite(.timeLimit(.minutes(15))) struct CommandTests {
    private static let answer = #"IFS= read -r line; echo '{"ok":true}'; cat"#

    private struct Refusal: Error, Equatable {
        let failureClass: FailureClass
        let message: String

        static func failed(_ message: String) -> Refusal { Refusal(failureClass: .delegate, message: message) }
    }

    /// - Returns: what it answered, or its failure.
    private func run(
        _ script: String, input: String = "line\npicture", limits change: (inout CommandLimits) -> Void = { _ in },
    ) async throws -> Result<String, Refusal> {
        try await withTemporaryDirectory { folder in
            let command = try InstalledCommand(TransformCommand(name: "it", path: try program(script, in: folder)))
            var limits = CommandLimits()
            change(&limits)
            let cache = try ContentCache(directory: folder.appending("cache"))
            let file = try cache.makeFile()
            try file.descriptor.writeAll(input.utf8)
            let reading = try file.openedForReading()
            do throws(Failure) {
                return .success(
                    String(decoding: try await CommandRun(command: command, limits: limits).run(reading), as: UTF8.self)
                )
            } catch {
                return .failure(Refusal(failureClass: error.failureClass, message: error.message))
            }
        }
    }

    private func program(_ script: String, in folder: FilePath) throws -> String {
        let path = folder.appending("program-\(UInt32.random(in: 0 ... .max))")
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .closeOnExec], permissions: [.ownerReadWriteExecute])
        try file.closeAfter { _ = try file.writeAll("#!/bin/sh\n\(script)\n".utf8) }
        return path.string
    }

    @Test func aCommandReadsItsInputAndAnswers() async throws {
        #expect(try await run(Self.answer) == .success("picture"))
    }

    @Test func aCommandHasAnEnvironmentOfItsOwn() async throws {
        let script = #"echo '{"ok":true}'; pwd; env | cut -d= -f1 | sort | tr '\n' ' '"#
        #expect(try await run(script) == .success("/\nHOME LANG PATH PWD "))
    }

    @Test(arguments: [
        ("exit 3", "ended with code 3"), ("echo oh dear >&2; echo more >&2; exit 3", "ended with code 3: oh dear"),
        (#"echo '{"error":"too blue"}'"#, "says: too blue"), (#"printf '{"error":"no"}'; exit 9"#, "says: no"),
        ("echo garbage", "must answer with a line"), ("exit 0", "must answer with a line"),
        (#"echo '{"ok":true}'"#, "must answer with a line"), (#"echo '{"ok":false}'; cat"#, "must answer with a line"),
        ("kill -9 $$", "was ended by signal 9"), ("head -c 3000000 /dev/zero >&2; exit 4", "ended with code 4"),
    ])
    func aFailingCommandIsReportedWithTheReason(script: String, words: String) async throws {
        guard case .failure(let refusal) = try await run(script), case let message = refusal.message else {
            Issue.record("it went well")
            return
        }
        #expect(message.hasPrefix("The command 'it' ") && message.contains(words), "\(message)")
    }

    @Test func aTooLargeAnswerOfACommandIsRefused() async throws {
        let result = try await run(#"echo '{"ok":true}'; cat /dev/zero"#) { $0.bytes = 100_000 }
        #expect(result == .failure(.failed("The command 'it' answered more than 100000 bytes")))
    }

    @Test(arguments: [
        "sleep 60", "sleep 60 & exec >&- 2>&-; sleep 60", "exec >&- 2>&-; sleep 60 & sleep 60",
        "(sleep 60; echo x) | cat", "trap : TERM INT; sleep 60; sleep 60",
    ])
    func aCommandThatTakesTooLongIsEndedWithItsChildren(script: String) async throws {
        let clock = ContinuousClock()
        let mark = "PW\(UInt32.random(in: 0 ... .max))"
        let started = clock.now
        let result = try await run("\(mark)=1; export \(mark); \(script)") { $0.time = .milliseconds(300) }
        #expect(result == .failure(.failed("The command 'it' took longer than 300 ms")))
        // Much less than the minute that it would take.
        #expect(clock.now - started < .seconds(50))
        try await waitUntilGone(mark)
    }

    /// A process that has left the group lives on, and does not delay the result.
    @Test func aDaemonThatKeepsThePipesOpenDelaysNoResult() async throws {
        let clock = ContinuousClock()
        let started = clock.now
        let result = try await run("setsid sleep 50 & sleep 60") { $0.time = .milliseconds(300) }
        #expect(result == .failure(.failed("The command 'it' took longer than 300 ms")))
        #expect(clock.now - started < .seconds(45))
    }

    @Test func backgroundProcessesOfACommandAreEnded() async throws {
        let mark = "PW\(UInt32.random(in: 0 ... .max))"
        let script = "\(mark)=1; export \(mark); sleep 300 >/dev/null 2>&1 & \(Self.answer)"
        #expect(try await run(script) == .success("picture"))
        try await waitUntilGone(mark)
    }

    @Test func aCancelledCommandIsEnded() async throws {
        let mark = "PW\(UInt32.random(in: 0 ... .max))"
        let task = Task { try await run("\(mark)=1; export \(mark); sleep 60") }
        try await Task.sleep(for: .milliseconds(500))
        task.cancel()
        #expect(try await task.value == .failure(Refusal(failureClass: .cancelled, message: "The worker is stopping.")))
        try await waitUntilGone(mark)
    }

    private func waitUntilGone(_ mark: String) async throws {
        for _ in 0..<100 where Self.isRunning(mark) { try await Task.sleep(for: .milliseconds(50)) }
        #expect(!Self.isRunning(mark))
    }

    /// Whether a process has this variable.
    private static func isRunning(_ mark: String) -> Bool {
        ProcessTable.all().contains { pid in
            guard let file = try? FileDescriptor.open("/proc/\(pid)/environ", .readOnly) else { return false }
            defer { try? file.close() }
            let bytes =
                (try? [UInt8](unsafeUninitializedCapacity: 16_384) { buffer, count in
                    count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
                }) ?? []
            return String(decoding: bytes, as: UTF8.self).contains("\(mark)=")
        }
    }

    // MARK: - Names and versions

    @Test func aCommandIsParsedFromItsNamePathAndVersion() throws {
        #expect(try TransformCommand(parsing: "a=/x/y@2") == TransformCommand(name: "a", path: "/x/y", version: "2"))
        #expect(try TransformCommand(parsing: "a=/x@1/y") == TransformCommand(name: "a", path: "/x@1/y"))
        for text in ["a", "=/x", "a=", "a b=/x", "é=/x"] {
            let error = #expect(throws: WorkerError.self) { try TransformCommand(parsing: text) }
            #expect(error?.code == .usage)
        }
    }

    @Test func theVersionOfACommandIsItsFilesHashByDefault() throws {
        try withTemporaryDirectory { folder in
            let versions = try ["exit 1", "exit 2", "exit 1"].map {
                try InstalledCommand(TransformCommand(name: "it", path: try program($0, in: folder))).version
            }
            #expect(versions[0] != versions[1] && versions[0] == versions[2])
            for path in [folder.string, folder.appending("none").string, "/etc/passwd"] {
                let error = #expect(throws: WorkerError.self) {
                    try InstalledCommand(TransformCommand(name: "it", path: path))
                }
                #expect(error?.code == .usage)
            }
        }
    }

    @Test func versionAndArgumentArePartOfTheRenditionsIdentity() throws {
        var identities: Set<String> = []
        for version in ["1", "2"] {
            var delegates = DelegateVersions()
            delegates.commands["c"] = version
            delegates.transforms["c"] = version
            for effect in ["command:c", "command:c:x", "delegate:c", "delegate:c:x"] {
                let spec = try VariantSpec.parse("v=20x,\(effect)")
                identities.insert(RenditionIdentities(coder: "c", delegates: delegates).identity(of: spec, source: "s"))
            }
        }
        #expect(identities.count == 8)
    }

    // MARK: - Transforms in helpers

    private static let helper = Workplace.executable.removingLastComponent().appending("TestHelper").string

    @Test(
        .enabled(if: access(helper, X_OK) == 0),
        arguments: [
            ("delegate:crash", "transform or the decoder crashed twice"), ("delegate:refusal:rain", "no rain today"),
            ("delegate:unknown", "this worker has crash, refusal"), ("command:unknown", "this worker has none"),
        ])
    func aTransformsFailureFailsOneImageOnly(effect: String, words: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.png) }
        try await withWorkplace {
            let link = $0.helpers.executable
            unlink(link)
            symlink(Self.helper, link)
            $0.helpers.arguments = ["helper"]
            $0.extensions = ImagingExtensions(transforms: [Named(name: "crash"), Named(name: "refusal")])
        } _: { place in
            let bad = try await place.enqueue([origin.url("/a")], variants: "v=8x,\(effect)")
            let good = try await place.enqueue([origin.url("/b")], variants: "v=8x")
            try await place.drain()
            let item = try await place.item(bad)
            #expect(item.failure == "delegate" && item.message?.contains(words) == true, "\(item.message ?? "")")
            #expect(try await place.item(good).state == .done)
            #expect(try await place.store.blacklist.entries(.url(origin.url("/a"))).isEmpty)
        }
        origin.stop()
    }

    /// What a worker has to know of a transform; helpers have the real one.
    private struct Named: ImageTransform {
        let name: String
        let version = "1"

        func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage { image }
    }
}

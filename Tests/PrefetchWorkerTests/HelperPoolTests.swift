import ContentCache
import Core
import Dispatch
import Glibc
import ImageFiles
import Imaging
import Jobs
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// Helpers that misbehave: shell scripts in a helper's place.
@Suite(.timeLimit(.minutes(15))) struct HelperPoolTests {
    /// The first word of a helper that is guarded.
    private static let ready = #"printf '{"ready":true,"landlock":7,"seccomp":true,"complaints":[]}' >&0"#

    /// What a pool with such a helper makes of one image.
    private func outcome(
        of script: String, wallSeconds: Int = 30, in folder: FilePath,
    ) async throws -> Result<HelperAnswer, Failure> {
        var configuration = HelperConfiguration(count: 1, executable: "/bin/sh", arguments: ["-c", script])
        configuration.wallSeconds = wallSeconds
        let cache = try ContentCache(directory: folder.appending("cache"))
        let logger = Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() }
        let pool = HelperPool(configuration: configuration, limits: ImageLimits(), cache: cache, logger: logger)
        let source = try cache.makeFile()
        try source.descriptor.writeAll(TestImages.png(8, 8))
        return await withTaskGroup { group in
            group.addTask { await pool.run() }
            let outcome = await pool.transform(source, into: [])
            pool.close()
            await group.waitForAll()
            return outcome
        }
    }

    private func failure(of outcome: Result<HelperAnswer, Failure>) -> FailureClass? {
        if case .failure(let failure) = outcome { return failure.failureClass }
        return nil
    }

    @Test func anImageThatKillsTwoHelpersIsADecoderCrash() async throws {
        try await withTemporaryDirectory { folder in
            let deaths = folder.appending("deaths")
            let outcome = try await outcome(of: "echo x >>\(deaths); \(Self.ready); exit 11", in: folder)
            #expect(failure(of: outcome) == .decoderCrash)
            let log = try FileDescriptor.open(deaths, .readOnly)
            defer { try? log.close() }
            #expect(try log.seek(offset: 0, from: .end) == 4, "the image was tried exactly twice")
        }
    }

    @Test func anImageThatTakesTooLongIsADecoderCrashAtOnce() async throws {
        try await withTemporaryDirectory { folder in
            let outcome = try await outcome(of: "\(Self.ready); exec sleep 100", wallSeconds: 1, in: folder)
            #expect(failure(of: outcome) == .decoderCrash)
        }
    }

    @Test func anInvalidAnswerFromAHelperIsADecoderCrash() async throws {
        try await withTemporaryDirectory { folder in
            let outcome = try await outcome(of: "\(Self.ready); printf nonsense >&0; sleep 1", in: folder)
            #expect(failure(of: outcome) == .decoderCrash)
        }
    }

    /// Its renditions would get the identity that other libraries' renditions have.
    @Test(arguments: [("vips 1", true), ("vips 2", false)])
    func aHelperWithOtherLibrariesThanTheRunBeganWithGetsNoPicture(_ coder: String, isSame: Bool) async throws {
        try await withTemporaryDirectory { folder in
            let greeting = #"printf '{"ready":true,"landlock":7,"seccomp":true,"complaints":[],"coder":"$C"}' >&0"#
                .replacing("$C", with: coder)
            let configuration = HelperConfiguration(
                count: 1, executable: "/bin/sh", arguments: ["-c", "\(greeting); exec sleep 5"])
            let cache = try ContentCache(directory: folder.appending("cache"))
            let pool = HelperPool(
                configuration: configuration, limits: ImageLimits(), cache: cache,
                logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
            #expect(pool.program.isInUse("vips 1"))
            var refusal: String?
            do {
                try await pool.withHelper { helper in
                    defer { helper.kill() }
                    try await pool.greet(helper, on: DispatchQueue(label: "greeting"))
                }
            } catch {
                refusal = "\(error)"
            }
            #expect((refusal == nil) == isSame)
            if !isSame { #expect(refusal?.contains("restart the worker") == true) }
        }
    }

    /// For the request in the helper, the waiting requests, and later ones.
    @Test func anAbandonedPoolAnswersEveryRequest() async throws {
        try await withTemporaryDirectory { folder in
            let asked = folder.appending("asked")
            // It says that it has got its image, and never answers.
            let script = "\(Self.ready); head -c 1 <&0 >/dev/null; echo x >\(asked); exec sleep 1000"
            let configuration = HelperConfiguration(count: 1, executable: "/bin/sh", arguments: ["-c", script])
            let cache = try ContentCache(directory: folder.appending("cache"))
            let pool = HelperPool(
                configuration: configuration, limits: ImageLimits(), cache: cache,
                logger: Logger(label: "tests") { _ in SwiftLogNoOpLogHandler() })
            let source = try cache.makeFile()
            try source.descriptor.writeAll(TestImages.png(8, 8))
            let isStopped = await withTaskGroup(of: Bool.self) { group in
                group.addTask {
                    await pool.run()
                    return true
                }
                for _ in 0..<5 {
                    group.addTask { failure(of: await pool.transform(source, into: [])) == .cancelled }
                }
                while access(asked.string, F_OK) != 0 { await Task.yield() }
                pool.abandon()
                group.addTask { failure(of: await pool.transform(source, into: [])) == .cancelled }
                return await group.reduce(true) { $0 && $1 }
            }
            #expect(isStopped)
        }
    }

    @Test(arguments: ["exit 1", "printf hello >&0; sleep 1"])
    func aHelperThatNeverGetsReadyIsADiskErrorAndNoFaultOfTheImage(script: String) async throws {
        try await withTemporaryDirectory { folder in
            guard failure(of: try await outcome(of: script, in: folder)) == .diskError else {
                Issue.record("The image was blamed.")
                return
            }
        }
    }
}

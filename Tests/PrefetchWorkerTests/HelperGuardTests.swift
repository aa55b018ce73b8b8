import ContentCache
import Core
import Dispatch
import Glibc
import Jobs
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import PrefetchWorker
@testable import Variants

/// Real helpers behind a pool: their work within the sandbox, and when they are replaced.
@Suite(.timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt)) struct HelperGuardTests {
    /// Every format that is read, made into every format that is written, by one helper in its sandbox.
    @Test(arguments: HelperUser.possible) func everyFormatIsReadAndWritten(user: HelperUser) async throws {
        let variants = try VariantSpec.Output.allCases.map {
            try VariantSpec.parse("\($0.rawValue)=8x8,fill,\($0.rawValue)")
        }
        try await withTemporaryDirectory { folder in
            let (program, arguments) = user.command(try HelperUser.copyOfHelper(in: folder), [])
            try await withPool {
                $0.executable = program
                $0.arguments = arguments
                $0.requiresSandbox = true
            } body: { pool, cache in
                for format in ImageFormat.allCases {
                    let outcome = await pool.transform(
                        try file(SampleImage.bytes(of: format), in: cache), into: variants)
                    guard case .success(.made(let report, let blobs)) = outcome else {
                        Issue.record("\(format): \(outcome)")
                        continue
                    }
                    #expect(report.facts.format == format)
                    #expect(report.renditions.map(\.format) == variants.map(\.format?.imageFormat))
                    #expect(blobs.count == variants.count)
                }
            }
        }
    }

    /// More threads than a helper starts with: large enough that libaom divides the picture.
    @Test func aLargePictureIsEncodedByThreads() async throws {
        let variants = [
            try VariantSpec.parse("big=1500x1000,fill,enlarge,avif"), try VariantSpec.parse("small=700x500,fill,webp"),
        ]
        try await withPool {
            $0.requiresSandbox = true
        } body: { pool, cache in
            let outcome = await pool.transform(try file(TestImages.png(800, 600), in: cache), into: variants)
            guard case .success(.made(_, let blobs)) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(blobs.count == 2)
        }
    }

    /// Threads that libraries started before the filter, too.
    @Test func everyThreadOfAHelperIsFiltered() async throws {
        try await withPool { _ in
        } body: { pool, _ in
            let threads = try await pool.withHelper { helper in
                try await pool.greet(helper, on: DispatchQueue(label: "test"))
                return try ProcessTable.threads(of: helper.process)
            }
            #expect(threads.count > 1)
            // Mode 2 is a filter (proc(5)).
            #expect(threads.allSatisfy { $0.contains("\nSeccomp:\t2\n") && $0.contains("\nNoNewPrivs:\t1\n") })
        }
    }

    @Test func aHelperIsReplacedAfterItsNumberOfImagesAndNoImageIsLost() async throws {
        let log = LogCounter()
        try await withPool(log) {
            $0.recycleAfterImages = 3
        } body: { pool, cache in
            for _ in 0..<10 { try await expectMade(pool, cache) }
        }
        #expect(log.messages(containing: "replaced") == 3)
        #expect(log.messages(containing: "died") == 0)
    }

    @Test func aHelperThatHasGrownIsReplacedAndNoImageIsLost() async throws {
        let log = LogCounter()
        try await withPool(log) {
            $0.recycleAboveBytes = 1
        } body: { pool, cache in
            for _ in 0..<4 { try await expectMade(pool, cache) }
        }
        #expect(log.messages(containing: "replaced") == 4)
        #expect(log.messages(containing: "died") == 0)
    }

    @Test func aHelperWithinItsBoundsIsKept() async throws {
        let log = LogCounter()
        try await withPool(log) { _ in
        } body: { pool, cache in
            for _ in 0..<10 { try await expectMade(pool, cache) }
        }
        #expect(log.messages(containing: "replaced") == 0)
    }

    @Test func aSourceCanOnlyBeReadByAHelper() throws {
        try withTemporaryDirectory { folder in
            let source = try file([1, 2, 3], in: try ContentCache(directory: folder.appending("cache")))
            let reading = try source.openedForReading()
            #expect(throws: Errno.badFileDescriptor) { try reading.descriptor.writeAll([4]) }
        }
    }

    @Test func theMemoryOfAProcessIsRead() throws {
        let bytes = try #require(ProcessMemory.own(by: getpid()))
        #expect((1 << 20..<1 << 36).contains(bytes))
        #expect(ProcessMemory.own(by: -1) == nil)
    }

    // MARK: - Where the kernel lacks a guard

    @Test(.enabled(if: Unguarded.isPossible), arguments: ["landlock_create_ruleset", "seccomp"])
    func withoutASandboxImagesAreMadeWithOneWarning(call: String) async throws {
        let log = LogCounter()
        try await withPool(log) {
            $0.loseGuard(call)
            $0.recycleAfterImages = 1
        } body: { pool, cache in
            for _ in 0..<3 { try await expectMade(pool, cache) }
        }
        #expect(log.messages(containing: "without a full sandbox") == 1)
    }

    @Test(.enabled(if: Unguarded.isPossible), arguments: ["landlock_create_ruleset", "seccomp"])
    func aHelperWithoutARequiredSandboxGetsNoImage(call: String) async throws {
        try await withPool {
            $0.loseGuard(call)
            $0.requiresSandbox = true
        } body: { pool, cache in
            let outcome = await pool.transform(try file(TestImages.png(8, 8), in: cache), into: [])
            guard case .failure(let failure) = outcome, failure.failureClass == .diskError else {
                Issue.record("\(outcome)")
                return
            }
            let error = await #expect(throws: WorkerError.self) { try await pool.checkSandbox() }
            #expect(error?.code == .unavailable)
        }
    }

    // MARK: -

    // MARK: - Time and memory

    private static let testHelper = Workplace.executable.removingLastComponent().appending("TestHelper").string
    private static let hasTestHelper = access(testHelper, X_OK) == 0

    /// The kernel ends a process that uses too much CPU time, long before the wall-clock limit.
    @Test(.enabled(if: hasTestHelper)) func aHelperThatComputesForTooLongIsEnded() async throws {
        try await withPool {
            $0.executable = Self.testHelper
            $0.arguments = ["helper"]
            $0.processorSeconds = 1
            $0.wallSeconds = 600
        } body: { pool, cache in
            let spec = try VariantSpec.parse("v=8x,delegate:spin:600000")
            let outcome = await pool.transform(try file(TestImages.png(20, 20), in: cache), into: [spec])
            guard case .failure(let failure) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(failure.failureClass == .delegate, "\(failure)")
            try await expectMade(pool, cache)
        }
    }

    /// The variant is at fault and not the picture, so the URL isn't blacklisted.
    @Test func variantsThatCostTooMuchFailWithClassTransform() async throws {
        try await withPool {
            $0.processorSeconds = 2
            $0.wallSeconds = 600
        } body: { pool, cache in
            let spec = try VariantSpec.parse("v=x,png,pad:0:6000:6000:0,blur:200")
            let outcome = await pool.transform(try file(TestImages.png(20, 20), in: cache), into: [spec])
            guard case .failure(let failure) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(failure.failureClass == .transform && failure.message.contains("2 s of CPU"), "\(failure)")
            try await expectMade(pool, cache)
        }
    }

    /// Two helpers, and memory for one progressive JPEG at a time: they take turns.
    @Test(.enabled(if: hasTestHelper)) func helpersShareTheMemoryForDecoding() async throws {
        let picture = TestImages.jpeg(1_000, 1_000, scans: 3)
        let needed = try Self.estimate(picture)
        #expect(needed > 1_000_000)
        let duration = Duration.milliseconds(300)
        try await withPool {
            $0.executable = Self.testHelper
            $0.arguments = ["helper"]
            $0.count = 2
            $0.decoderBytes = needed * 3 / 2
        } body: { pool, cache in
            let spec = try VariantSpec.parse("v=8x,delegate:spin:300")
            let start = ContinuousClock.now
            try await withThrowingTaskGroup { group in
                for _ in 0..<6 {
                    let source = try file(picture, in: cache)
                    group.addTask { await pool.transform(source, into: [spec]) }
                }
                for try await outcome in group {
                    guard case .success(.made) = outcome else {
                        Issue.record("\(outcome)")
                        continue
                    }
                }
            }
            #expect(ContinuousClock.now - start >= duration * 6)
        }
    }

    private static func estimate(_ picture: [UInt8]) throws -> Int {
        try withTemporaryDirectory { folder in
            let file = try ContentCache(directory: folder.appending("cache")).makeFile()
            try file.descriptor.writeAll(picture)
            return DecoderEstimate(limits: ImageLimits()).bytes(file.descriptor)
        }
    }

    private func withPool(
        _ log: LogCounter = LogCounter(), configure: (inout HelperConfiguration) -> Void,
        body: (HelperPool, ContentCache) async throws -> Void,
    ) async throws {
        try await withTemporaryDirectory { folder in
            var configuration = HelperConfiguration(
                count: 1, executable: Workplace.executable.string, arguments: [])
            configure(&configuration)
            let cache = try ContentCache(directory: folder.appending("cache"))
            let pool = HelperPool(
                configuration: configuration, limits: ImageLimits(), cache: cache, logger: log.logger)
            async let running: Void = pool.run()
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(pool, cache))
            } catch {
                result = .failure(error)
            }
            pool.close()
            await running
            try result.get()
        }
    }

    private func file(_ bytes: [UInt8], in cache: ContentCache) throws -> BlobFile {
        let file = try cache.makeFile()
        try file.descriptor.writeAll(bytes)
        return file
    }

    private func expectMade(_ pool: HelperPool, _ cache: ContentCache) async throws {
        let outcome = await pool.transform(
            try file(TestImages.png(16, 16), in: cache), into: [try VariantSpec.parse("small=8x8,fill,jpeg")])
        guard case .success(.made(_, let blobs)) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(blobs.count == 1)
    }
}

extension HelperConfiguration {
    /// As on a kernel that doesn't have this call.
    fileprivate mutating func loseGuard(_ call: String) {
        let command = Unguarded.command(executable, without: [call])
        executable = command.program
        arguments = command.arguments + arguments
    }
}

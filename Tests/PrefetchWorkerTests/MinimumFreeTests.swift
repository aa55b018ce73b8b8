import ContentCache
import Glibc
import Jobs
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import PrefetchWorker

/// The disk space that a worker keeps free without --min-free.
@Suite("Minimum of free space", .timeLimit(.minutes(15))) struct MinimumFreeTests {
    private static let mebibyte: Int64 = 1 << 20

    /// An engine as a worker builds it, with its cache on this folder's disk.
    private func minimum(_ folder: FilePath, _ asked: Int64? = nil) async throws -> Int64 {
        var place = try Workplace(folder)
        place.configuration.minimumFree = asked
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let engine = try Engine(place.configuration, place.store, logger: logger)
        try await place.store.close()
        return engine.collector.policy.minimumFree
    }

    /// Such a disk takes up no more memory than what is written to it.
    @Test(
        .enabled(if: getuid() == 0, "only root can mount a disk"),
        arguments: [
            ("16m", 16 * mebibyte / 20), ("1g", 1_024 * mebibyte / 20), ("10g", 512 * mebibyte),
            ("20g", 1_024 * mebibyte), ("21g", 1_024 * mebibyte), ("500g", 1_024 * mebibyte),
        ])
    func `The default is a twentieth of a small disk and a gibibyte of a large disk`(size: String, wanted: Int64)
        async throws
    {
        try await withTemporaryDirectory { folder in
            let mounted = try ChildProcess.run("mount", ["-t", "tmpfs", "-o", "size=\(size)", "none", folder.string])
            guard mounted == 0 else {
                withKnownIssue("No disk can be mounted here.") { Issue.record("mount failed") }
                return
            }
            defer { umount2(folder.string, 2) }  // MNT_DETACH
            #expect(try await minimum(folder) == wanted)
        }
    }

    @Test func `The default is that of the cache's disk, unless --min-free is given`() async throws {
        try await withTemporaryDirectory { folder in
            let bytes = try ContentCache(directory: folder.appending("cache")).diskBytes()
            #expect(bytes > 0)
            #expect(try await minimum(folder) == min(1_024 * Self.mebibyte, bytes / 20))
        }
        for asked in [0, 5, Int64.max] {
            try await withTemporaryDirectory { folder in
                let found = try await minimum(folder, asked)
                #expect(found == asked)
            }
        }
    }
}

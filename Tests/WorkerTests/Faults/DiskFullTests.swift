import Glibc
import SystemPackage
import TestSupport
import Testing

/// A disk that is full: nothing is lost, no try is used up, and work goes on when there is room.
@Suite(
    "A disk that fills up", .serialized, .timeLimit(.minutes(30)),
    .enabled(if: getuid() == 0, "only root can mount a small disk"))
struct FullDiskFaultTests {
    enum Layout: String, CaseIterable, Sendable {
        case together, cacheAlone, databaseAlone
    }

    @Test(arguments: Layout.allCases)
    func `Whatever room there is, nothing is lost`(_ layout: Layout) async throws {
        try await FaultBench.lend { bench in
            let most = FaultScale.number("FAULT_DISK_STEPS", 3)
            for step in 0..<most {
                // From nothing to more than the batch takes, in pieces of 64 KiB.
                try await withSmallDisk(kibibytes: 64 * (step * 16 / most)) { disk, free in
                    let worker = try bench.worker()
                    try Self.move(worker, layout, to: disk)
                    let filler = disk + "/filler"
                    try Self.fill(filler, leaving: free, on: disk)
                    let what = "\(layout), \(free >> 10) KiB"
                    let first = try await worker.run(
                        ["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil, within: .seconds(90))
                    #expect(
                        [.code(0), .code(73), .code(74), .code(75)].contains(first.exit), "\(what): \(first.errors)")
                    unlink(filler)
                    #expect(try await worker.value("SELECT ifnull(max(attempts), 0) <= 1 FROM items") == "1", "\(what)")
                    try await worker.drain()
                    try await bench.check(worker, what)
                }
            }
        }
    }

    @Test func `A worker that waits for room says so once and goes on by itself`() async throws {
        try await FaultBench.lend { bench in
            try await withSmallDisk(kibibytes: 0) { disk, free in
                let worker = try bench.worker()
                try Self.move(worker, .cacheAlone, to: disk)
                let filler = disk + "/filler"
                try Self.fill(filler, leaving: free, on: disk)
                let child = try worker.start()
                try await worker.eventually("it pauses") {
                    try worker.errors(of: child).contains("The worker pauses")
                }
                try await Task.sleep(for: .seconds(3))
                unlink(filler)
                let clock = ContinuousClock()
                let start = clock.now
                try await worker.untilEnded("1")
                // Five seconds and what the work itself takes on a busy machine.
                #expect(clock.now - start < .seconds(20))
                let errors = try worker.errors(of: child)
                #expect(errors.components(of: "The worker pauses") <= 2, "\(errors)")
                #expect(errors.contains("goes on"))
                child.send(SIGTERM)
                #expect(try await child.wait() == .code(0))
                try await bench.check(worker, "after waiting")
            }
        }
    }

    private static func move(_ worker: TestWorker, _ layout: Layout, to disk: String) throws {
        if layout != .databaseAlone { try link(worker.cache, to: disk + "/cache") }
        if layout != .cacheAlone {
            _ = try ChildProcess.run("mv", [worker.database, disk + "/worker.db"])
            guard symlink(disk + "/worker.db", worker.database) == 0 else { throw Errno(rawValue: errno) }
        }
    }

    private static func link(_ path: String, to target: String) throws {
        if rename(path, target) != 0 { _ = try ChildProcess.run("mv", [path, target]) }
        if access(target, F_OK) != 0, mkdir(target, 0o755) != 0 { throw Errno(rawValue: errno) }
        guard symlink(target, path) == 0 else { throw Errno(rawValue: errno) }
    }

    private static func fill(_ path: String, leaving free: Int, on disk: String) throws {
        var info = statvfs()
        guard statvfs(disk, &info) == 0 else { throw Errno(rawValue: errno) }
        let bytes = max(0, Int(info.f_bavail) * Int(info.f_frsize) - free)
        // Not for the programs of other tests: as long as one has it open, its room is not free.
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter {
            let block = [UInt8](repeating: 1, count: 4_096)
            for _ in 0..<(bytes / 4_096) { _ = try file.writeAll(block) }
        }
    }

    private func withSmallDisk(kibibytes: Int, _ body: (String, Int) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            let options = "size=16m,nr_inodes=4000"
            guard try ChildProcess.run("mount", ["-t", "tmpfs", "-o", options, "none", folder.string]) == 0 else {
                withKnownIssue("No disk can be mounted here, so a full one can't be tested.") {
                    Issue.record("mount failed")
                }
                return
            }
            defer { umount2(folder.string, 2) }  // MNT_DETACH, whatever is still open in it
            try await body(folder.string, kibibytes << 10)
        }
    }
}

extension String {
    fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}

import Glibc
import TestSupport
import Testing

/// A full disk: no item is lost, no try is used up, and work goes on when there is space.
@Suite(
    "A disk that fills up", .serialized, .timeLimit(.minutes(30)),
    .enabled(if: getuid() == 0, "only root can mount a small disk"))
struct FullDiskFaultTests {
    enum Layout: String, CaseIterable, Sendable {
        case together, cacheAlone, databaseAlone
    }

    @Test(arguments: Layout.allCases)
    func `A disk that becomes full at any point of a run loses nothing`(_ layout: Layout) async throws {
        try await FaultBench.lend { bench in
            let most = FaultScale.number("FAULT_DISK_STEPS", 3)
            for step in 0..<most {
                // From nothing to more than the batch takes, in pieces of 64 KiB.
                try await SmallDisk.lend { disk in
                    let free = (64 << 10) * (step * 16 / most)
                    let worker = try bench.worker()
                    try Self.move(worker, layout, to: disk)
                    try disk.fill(leaving: free)
                    let what = "\(layout), \(free >> 10) KiB"
                    let first = try await worker.run(
                        ["run", "--drain", "--quiet"] + TestWorker.quick, expecting: nil, within: .seconds(90))
                    #expect(
                        [.code(0), .code(73), .code(74), .code(75)].contains(first.exit), "\(what): \(first.errors)")
                    disk.empty()
                    #expect(try await worker.value("SELECT ifnull(max(attempts), 0) <= 1 FROM items") == "1", "\(what)")
                    try await worker.drain()
                    try await bench.check(worker, what)
                }
            }
        }
    }

    @Test func `A worker that pauses for a full disk reports the pause once and goes on by itself`() async throws {
        try await FaultBench.lend { bench in
            try await SmallDisk.lend { disk in
                let worker = try bench.worker()
                try Self.move(worker, .cacheAlone, to: disk)
                try disk.fill(leaving: 0)
                let child = try worker.start()
                try await worker.eventually("it pauses") {
                    try worker.errors(of: child).contains("The worker pauses")
                }
                try await Task.sleep(for: .seconds(3))
                // How long a worker takes to start and to do all of it here and now: what a busy machine may add.
                let clock = ContinuousClock()
                let calm = try bench.worker()
                let allowance = try await clock.measure { try await calm.drain() }
                try bench.remove(calm)
                disk.empty()
                let start = clock.now
                try await worker.eventually("it works again", within: .seconds(60)) {
                    try await worker.value("SELECT count(*) FROM items WHERE state IN ('active', 'done')") != "0"
                }
                let waited = clock.now - start
                #expect(waited < .seconds(5) + allowance * 2, "\(waited), and all of it takes \(allowance)")
                try await worker.untilEnded("1", within: .seconds(60))
                let errors = try worker.errors(of: child)
                #expect(errors.components(of: "The worker pauses") <= 2, "\(errors)")
                #expect(errors.contains("the worker continues"))
                child.send(SIGTERM)
                #expect(try await child.wait() == .code(0))
                try await bench.check(worker, "after waiting")
            }
        }
    }

    /// Reading a database makes files beside it, which need space.
    @Test func `A command on a database on a full disk ends with 75`() async throws {
        try await FaultBench.lend { bench in
            try await SmallDisk.lend { disk in
                let worker = try bench.worker()
                try Self.move(worker, .databaseAlone, to: disk)
                try disk.fill(leaving: 0)
                for command in [["status"], ["get", worker.url("/1.png")], ["enqueue", worker.url("/1.png")]] {
                    let asked = try await worker.run(command, expecting: 75)
                    #expect(asked.errors.contains("is full"), "\(command): \(asked.errors)")
                }
                disk.empty()
                try await worker.drain()
                try await bench.check(worker, "after a full disk")
            }
        }
    }

    /// Only while no file is open for writing: an idle worker has none in its cache.
    @Test func `A worker pauses while its cache is mounted read-only, and loses nothing`() async throws {
        try await FaultBench.lend { bench in
            try await SmallDisk.lend { disk in
                let worker = try bench.worker()
                try disk.hold(worker.cache)
                try await worker.sql("UPDATE jobs SET state = 'paused'")
                let child = try await worker.startRegistered()
                try await worker.eventually("nobody writes there") { try disk.mount(readOnly: true) }
                try await worker.run("resume", "1")
                try await worker.eventually("it pauses") {
                    try worker.errors(of: child).contains("The worker pauses")
                }
                #expect(try disk.mount(readOnly: false))
                try await worker.untilEnded("1", within: .seconds(60))
                child.send(SIGTERM)
                #expect(try await child.wait() == .code(0))
                try await bench.check(worker, "after a read-only mount")
            }
        }
    }

    private static func move(_ worker: TestWorker, _ layout: Layout, to disk: SmallDisk) throws {
        if layout != .databaseAlone { try disk.hold(worker.cache) }
        if layout != .cacheAlone { try disk.hold(worker.database) }
    }
}

extension String {
    fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}

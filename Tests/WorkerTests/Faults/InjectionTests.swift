import Glibc
import TestSupport
import Testing

/// One call fails, as on a disk that is full or failing for a moment: no item is lost, and no try is used up.
@Suite(
    "Injected errors", .serialized, .timeLimit(.minutes(30)), .enabled(if: FaultScale.hasStrace, FaultScale.noStrace))
struct InjectionTests {
    struct Fault: Sendable, CustomTestStringConvertible {
        let call: String
        let error: String
        let ordinals: [Int]
        var testDescription: String { "\(error) from \(call)" }
    }

    static let faults = [
        Fault(call: "fsync", error: "EIO", ordinals: [1, 2, 9, 40]),
        Fault(call: "fsync", error: "EINTR", ordinals: [2, 11]),
        Fault(call: "fsync", error: "ENOSPC", ordinals: [3]),
        Fault(call: "syncfs", error: "EIO", ordinals: [1, 2, 3]), Fault(call: "syncfs", error: "ENOSPC", ordinals: [1]),
        Fault(call: "syncfs", error: "EINTR", ordinals: [1]), Fault(call: "syncfs", error: "ENOSYS", ordinals: [1, 2]),
        Fault(call: "sync_file_range", error: "EIO", ordinals: [1, 9, 50]),
        Fault(call: "sync_file_range", error: "EPERM", ordinals: [1]),
        Fault(call: "fdatasync", error: "EIO", ordinals: [1, 2, 5]),
        Fault(call: "linkat", error: "ENOSPC", ordinals: [1, 9]), Fault(call: "linkat", error: "EIO", ordinals: [20]),
        Fault(call: "linkat", error: "EMFILE", ordinals: [2]),
        Fault(call: "socket", error: "EMFILE", ordinals: [1, 2, 3]),
        Fault(call: "socket", error: "ENOBUFS", ordinals: [2]),
        Fault(call: "pwrite64", error: "ENOSPC", ordinals: [1, 7, 40]),
        Fault(call: "pwrite64", error: "EIO", ordinals: [3, 25]),
        Fault(call: "linkat", error: "EDQUOT", ordinals: [3]), Fault(call: "pwrite64", error: "EDQUOT", ordinals: [5]),
        Fault(call: "linkat", error: "EROFS", ordinals: [4]), Fault(call: "fdatasync", error: "EDQUOT", ordinals: [4]),
        Fault(call: "flock", error: "EINTR", ordinals: [1, 5]),
    ]

    @Test(arguments: faults)
    func `A failed system call loses no item and uses up no try`(_ fault: Fault) async throws {
        try await FaultBench.lend { bench in
            try await FaultScale.forEach(fault.ordinals, atOnce: 2) { ordinal in
                let worker = try bench.worker()
                let what = "\(fault.error) from \(fault.call) \(ordinal)"
                let first = try await worker.drain(injecting: "error=\(fault.error):when=\(ordinal)", into: fault.call)
                // It goes on by itself, unless it could not even open its files: then it says so, and loses nothing.
                #expect([.code(0), .code(73), .code(74), .code(75)].contains(first.exit), "\(what): \(first.errors)")
                if first.exit != .code(0) { try await worker.drain() }
                try await bench.check(worker, what)
                // What could not be synced is told by the doctor from then on.
                let syncs = Int(try await worker.value("SELECT failed_syncs FROM cache_totals")) ?? 0
                let isTold = try await worker.run("doctor", expecting: nil).output.contains(
                    "failed to sync \(syncs) files")
                #expect(isTold == (syncs > 0), "\(what)")
                try bench.remove(worker)
            }
        }
    }

    /// The calls that fail when a disk is pulled out under a run: on some file systems all, on others writes only.
    ///
    /// Not `openat` and `read`: libdispatch looks at its threads in /proc by them, which no disk can take away, and ends a
    /// process for which they fail.
    static let deaths = [
        "pread64,preadv,pwrite64,fdatasync,fsync,syncfs,linkat,ftruncate,fallocate",
        "pwrite64,fdatasync,fsync,syncfs,linkat,ftruncate,fallocate",
    ]

    @Test(arguments: deaths)
    func `A failed disk is reported as such, not as a damaged database, and no item is lost`(
        _ calls: String
    ) async throws {
        try await withWorker({ .delayed(milliseconds: 100, then: Pictures.tiny($0)) }) { w in
            try await w.run("init")
            try await w.enqueue((0..<300).map { w.url("/\($0).png") }, "--variant", "small=8x6,png")
            let worker = try w.start("--drain")
            try await w.eventually("some have ended") { try await w.value("SELECT done > 20 FROM jobs") == "1" }
            let files = ChildProcess.Files(output: w.place("strace.out"), errors: w.place("strace.err"))
            // Attached to a running process its faults hit every thread from then on.
            let strace = try RunningProgram(
                "strace",
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e", "inject=\(calls):error=EIO",
                    "-p", "\(worker.pid)",
                ], files: files, environment: ["PATH": "/usr/bin:/bin"])
            // It ends with 74, or pauses and says so, until the disk is back.
            try await w.eventually("the worker says so") { try w.errors(of: worker).contains("disk") }
            try await Task.sleep(for: .seconds(3))
            let isOver = worker.exit != nil
            strace.send(SIGTERM)
            _ = try await strace.wait()
            let exit = try await worker.wait(atMost: .seconds(90))
            let errors = try w.errors(of: worker)
            #expect(exit == .code(isOver ? 74 : 0), "\(errors)")
            for word in ["damaged", "rebuild", "Fatal error"] { #expect(!errors.contains(word), "\(errors)") }
            try await w.drain()
            #expect(try await w.counts("1") == "300|0|0|0|0")
            #expect(try await w.value("PRAGMA integrity_check") == "ok")
            try await w.run("cache", "verify")
        }
    }
}

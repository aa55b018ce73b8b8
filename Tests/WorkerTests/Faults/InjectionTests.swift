import Glibc
import TestSupport
import Testing

/// One call fails, as on a disk that is full or failing for a moment: nothing is lost, and no try is used up.
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
    func `A passing error costs nothing`(_ fault: Fault) async throws {
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

    /// From some call on, all of its kind fail, as on a disk that has been pulled out.
    static let deaths = [
        Fault(call: "pread64", error: "EIO", ordinals: [4, 60, 200]),
        Fault(call: "pwrite64", error: "EIO", ordinals: [6, 80]),
        Fault(call: "fdatasync", error: "EIO", ordinals: [2, 6]),
    ]

    @Test(arguments: deaths)
    func `A disk that died is called failed, not the database damaged, and nothing is lost when it is back`(
        _ fault: Fault
    ) async throws {
        try await FaultBench.lend { bench in
            try await FaultScale.forEach(fault.ordinals, atOnce: 2) { ordinal in
                let worker = try bench.worker()
                let what = "\(fault.error) from \(fault.call) \(ordinal) on"
                let first = try await worker.drain(injecting: "error=\(fault.error):when=\(ordinal)+", into: fault.call)
                #expect(first.exit == .code(74), "\(what): \(first.errors)")
                #expect(first.errors.contains("disk"), "\(what): \(first.errors)")
                for word in ["damaged", "rebuild", "Fatal error"] {
                    #expect(!first.errors.contains(word), "\(what): \(first.errors)")
                }
                try await worker.drain()
                try await bench.check(worker, what)
                try bench.remove(worker)
            }
        }
    }
}

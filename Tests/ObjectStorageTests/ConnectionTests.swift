import Glibc
import TestSupport
import Testing

@testable import ObjectStorage

/// Connections, the thread that runs them, and their ends.
@Suite("Connections", .timeLimit(.minutes(15)))
struct ConnectionTests {
    @Test(arguments: [LoopbackReply.silence, .stall(afterBytes: 10), .status(503)])
    func `Cancelling the task ends the call soon`(_ reply: LoopbackReply) async throws {
        let origin = try LoopbackOrigin { _ in reply }
        let bucket = try bucket(at: origin) {
            ($0.tries, $0.shortestPause, $0.longestPause) = (5, 60_000, 60_000)
        }
        let task = Task { await storageError { _ = try await bucket.bytes(of: "a") } }
        while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        try await Task.sleep(for: .milliseconds(50))
        let started = ContinuousClock.now
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        // Without the cancellation it would be 30, and 60 between two tries.
        #expect(ContinuousClock.now - started < .seconds(20))
        #expect(origin.requests.count == 1)
    }

    @Test func `A call that waits for a connection can be cancelled, and the others go on`() async throws {
        let barrier = Barrier()
        let origin = try LoopbackOrigin { request in
            guard request.path.hasSuffix("slow") else { return .ok([2]) }
            barrier.pass()
            return .ok([1])
        }
        let bucket = try bucket(at: origin) { $0.connections = 1 }
        async let slow = bucket.bytes(of: "slow")
        while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        let waiting = Task { await storageError { _ = try await bucket.bytes(of: "other") } }
        try await Task.sleep(for: .milliseconds(50))
        waiting.cancel()
        #expect(await waiting.value?.code == .cancelled)
        barrier.open()
        #expect(try await slow == [1])
        #expect(try await bucket.bytes(of: "other") == [2])
        #expect(origin.requestCount("/bucket/p/other") == 1)
    }

    @Test func `A call of a cancelled task sends nothing`() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        let bucket = try bucket(at: origin)
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return await storageError { _ = try await bucket.bytes(of: "a") }
        }
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        #expect(origin.requests.isEmpty)
    }

    @Test func `No more requests are in flight than allowed, and connections are kept`() async throws {
        let origin = try LoopbackOrigin { _ in .delayed(milliseconds: 2, then: .ok([1])) }
        let bucket = try bucket(at: origin) { $0.connections = 3 }
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            for number in 0..<60 { group.addTask { try await bucket.bytes(of: "\(number)") } }
            for try await bytes in group { #expect(bytes == [1]) }
        }
        #expect(origin.maxSimultaneous <= 3)
        #expect(origin.connectionCount <= 6)
    }

    @Test func `A program that is started meanwhile does not inherit connections`() async throws {
        let barrier = Barrier()
        let origin = try LoopbackOrigin { _ in
            barrier.pass()
            return .ok([1])
        }
        let child: RunningProgram
        do {
            let bucket = try bucket(at: origin)
            async let bytes = bucket.bytes(of: "a")
            while origin.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
            child = try RunningProgram(
                "sleep", ["600"], files: ChildProcess.Files(), environment: ["PATH": "/usr/bin:/bin"])
            barrier.open()
            #expect(try await bytes == [1])
        }
        for _ in 0..<6_000 where origin.openConnections > 0 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(origin.openConnections == 0)
        #expect(child.exit == nil)
        child.send(SIGKILL)
        try await child.wait()
    }

    @Test func `The thread and its connections end with the bucket`() async throws {
        let origin = try LoopbackOrigin { _ in .ok([1]) }
        do {
            let bucket = try bucket(at: origin)
            #expect(try await bucket.bytes(of: "a") == [1])
        }
        for _ in 0..<6_000 where origin.openConnections > 0 { try await Task.sleep(for: .milliseconds(10)) }
        #expect(origin.openConnections == 0)
    }

    @Test func `Calls that are cancelled at any moment all end`() async throws {
        let origin = try LoopbackOrigin {
            $0.path.hasSuffix("7") ? .status(503) : .delayed(milliseconds: 2, then: .ok([1]))
        }
        let bucket = try bucket(at: origin) { $0.connections = 4 }
        let counts = await withTaskGroup(of: StorageError.Code?.self) { group in
            for number in 0..<400 {
                group.addTask {
                    let call = Task { await storageError { _ = try await bucket.bytes(of: "\(number)") }?.code }
                    if number % 3 > 0 {
                        // Best effort: it only has to be some other moment each time.
                        try? await Task.sleep(for: .microseconds(number * 97 % 20_000))
                        call.cancel()
                    }
                    return await call.value
                }
            }
            return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
        #expect(counts.values.reduce(0, +) == 400)
        #expect(Set(counts.keys).isSubset(of: [nil, .cancelled, .unreachable]))
        #expect(try await bucket.bytes(of: "1") == [1])
    }
}

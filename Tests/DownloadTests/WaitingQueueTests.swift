import Testing

@testable import Download

/// The order of starts, without a network.
@Suite(.timeLimit(.minutes(15))) struct WaitingQueueTests {
    private let now = ContinuousClock.now

    fileprivate func queued(
        _ id: UInt64, _ host: DownloadURL, priority: Int = 0, rank: Int64 = 0, name: Int64? = nil,
    ) -> QueuedTransfer {
        let request = DownloadRequest(url: host.text, priority: priority, rank: rank, id: name)
        return QueuedTransfer(
            id: id, request: request, hop: Hop(url: host), beginning: host, onRedirect: { _ in }, answer: { _ in })
    }

    fileprivate func host(_ name: String) throws -> DownloadURL { try DownloadURL("http://\(name)/", maxBytes: 100) }

    /// Starts one at a time until nothing is left, and gives the order.
    fileprivate func drain(_ queue: inout WaitingQueue, limit: Int = .max) -> [UInt64] {
        var order: [UInt64] = []
        while order.count < limit, let next = queue.start(now: now) {
            order.append(next.id)
            queue.finished(host: next.host, start: now, now: now)
        }
        return order
    }

    /// One slot and seven requests, then seven more: 1, then 7 as queued before, 14…8, 6…2.
    @Test func lastInFirstOutWithinAHostAndAPriority() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1))
        let host = try host("a.example")
        for id in UInt64(1)...7 { queue.insert(queued(id, host, rank: id == 1 ? -100 : -Int64(id))) }
        var order = drain(&queue, limit: 2)
        for id in UInt64(8)...14 { queue.insert(queued(id, host, rank: -Int64(id))) }
        order += drain(&queue)
        #expect(order == [1, 7] + (8...14).reversed() + (2...6).reversed())
    }

    @Test func hostsOfTheSamePriorityTakeTurns() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 6))
        let (slow, quick) = (try host("slow.example"), try host("quick.example"))
        for id in UInt64(1)...100 { queue.insert(queued(id, slow, rank: Int64(id))) }
        for id in UInt64(101)...110 { queue.insert(queued(id, quick, rank: Int64(id))) }
        let first = (0..<6).compactMap { _ in queue.start(now: now)?.id }
        #expect(first == [1, 101, 2, 102, 3, 103])
    }

    @Test func theSlotsOfSilentTransfersGoToOtherHostsOnly() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 6))
        let (slow, quick) = (try host("slow.example"), try host("quick.example"))
        for id in UInt64(1)...3 { queue.insert(queued(id, slow, rank: Int64(id))) }
        #expect(queue.start(now: now, freeSlots: 2)?.id == 1)
        #expect(queue.start(now: now, freeSlots: 1)?.id == 2)
        queue.changeStalled("slow.example", by: 2)
        #expect(queue.start(now: now, freeSlots: 2) == nil)
        queue.insert(queued(9, quick, priority: -100))
        #expect(queue.start(now: now, freeSlots: 2)?.id == 9)
        #expect(queue.start(now: now, freeSlots: 3)?.id == 3)
    }

    @Test func anUrgentRequestIsNextHoweverManyWait() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1_000))
        let host = try host("a.example")
        for id in UInt64(1)...1_000 { queue.insert(queued(id, host, rank: Int64(id))) }
        #expect(drain(&queue, limit: 3) == [1, 2, 3])
        queue.insert(queued(2_000, host, priority: 100, rank: 5))
        #expect(drain(&queue, limit: 1) == [2_000])
    }

    /// The bound: one start of sixteen goes to the transfer that waits longest.
    @Test func anEndlessStreamOfUrgentRequestsStarvesNone() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1))
        let host = try host("a.example")
        queue.insert(queued(1, host, priority: -100))
        queue.insert(queued(2, host, priority: -50))
        var started: [UInt64] = []
        for id in UInt64(3)..<40 {
            queue.insert(queued(id, host, priority: 100))
            started += drain(&queue, limit: 1)
        }
        #expect(started.firstIndex(of: 1) == 15)
        #expect(started.firstIndex(of: 2) == 31)
    }

    @Test func aCoalescedRequestMovesAndTheOthersStay() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1))
        let host = try host("a.example")
        for id in UInt64(1)...5 { queue.insert(queued(id, host, rank: Int64(id), name: Int64(id))) }
        queue.update(priority: 7, rank: 0, for: 4)
        queue.update(priority: -7, rank: 0, for: 2)
        queue.update(priority: 0, rank: 0, for: 2)
        #expect(drain(&queue) == [4, 2, 1, 3, 5])
        #expect(queue.count == 0)
    }

    @Test func theLeastUrgentOfTheFullestHostsAreShed() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1))
        let (full, other) = (try host("full.example"), try host("other.example"))
        for id in UInt64(1)...10 { queue.insert(queued(id, full, rank: Int64(id))) }
        queue.insert(queued(11, other))
        #expect(queue.shed(over: 4).map(\.id) == Array(5...10))
        #expect(queue.count == 5)
        #expect(Set(drain(&queue)) == [1, 2, 3, 4, 11])
    }

    /// Every step costs the logarithm of the queue's length: thirty times as many take about as long, and not thirty
    /// times. The bound is generous: both cases are far from it.
    @Test func aStepCostsTheLogarithmOfTheQueuesLength() throws {
        func seconds(_ count: UInt64) throws -> Double {
            var queue = WaitingQueue(limits: HostLimits(perHost: 1))
            let hosts = try (0..<10).map { try host("h\($0).example") }
            for id in 1...count { queue.insert(queued(id, hosts[Int(id % 10)], rank: Int64(id * 7_919 % count))) }
            let started = ContinuousClock.now
            #expect(drain(&queue, limit: 500).count == 500)
            return (ContinuousClock.now - started) / .seconds(1)
        }
        let few = try seconds(1_000)
        let many = try seconds(30_000)
        #expect(many < 10 * few + 0.5)
    }

    /// Counted and not timed: the visited entries with a million waiting, over ten hosts, with every tenth cancelled
    /// and every tenth re-ranked. The cost of an entry is that of the heap, the logarithm.
    /// In a process of its own, because of the memory.
    @Test func aStepVisitsFewEntriesHoweverManyWait() async {
        await #expect(processExitsWith: .success) {
            let (tests, count) = (WaitingQueueTests(), UInt64(1_000_000))
            var queue = WaitingQueue(limits: HostLimits(perHost: 1))
            let hosts = try (0..<10).map { try tests.host("h\($0).example") }
            for id in 1...count {
                let name = id % 10 == 5 ? Int64(id) : nil
                let host = hosts[Int(id / 10 % 10)]
                queue.insert(tests.queued(id, host, rank: Int64(id * 7_919 % count), name: name))
            }
            #expect(queue.steps <= 3 * Int(count))
            var before = queue.steps
            for id in stride(from: UInt64(5), to: 20_000, by: 10) { queue.update(priority: 1, rank: 0, for: Int64(id)) }
            for id in stride(from: UInt64(1), to: 20_000, by: 10) { _ = queue.remove(id) }
            #expect(queue.steps - before <= 10 * 4_000)
            before = queue.steps
            #expect(tests.drain(&queue, limit: 4_000).count == 4_000)
            #expect(queue.steps - before <= 20 * 4_000)
        }
    }
}

/// What several workers share.
extension WaitingQueueTests {
    /// The heads of hosts that the queue has forgotten stay below a busy host's, and must not pile up there.
    @Test func cancelledRequestsOfManyHostsLeaveNoHeads() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 1))
        let urgent = try host("urgent.example")
        for id in UInt64(1)...2 { queue.insert(queued(id, urgent, priority: 100)) }
        for id in UInt64(10)..<20_000 {
            queue.insert(queued(id, try host("host\(id).example")))
            _ = queue.remove(id)
        }
        #expect(queue.hosts.count == 1)
        #expect(queue.heads.count < 2_000)
        #expect(drain(&queue) == [1, 2])
    }

    @Test func aHostWithoutAShareWaitsAndStartsOnceItHasAShare() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 4))
        let (a, b) = (try host("a.example"), try host("b.example"))
        queue.setShares(["a.example": HostShare(slots: 2, parts: 2)])
        for id in UInt64(1)...4 { queue.insert(queued(id, a, name: Int64(id))) }
        queue.insert(queued(5, b, name: 5))
        #expect([queue.start(now: now)?.id, queue.start(now: now)?.id, queue.start(now: now)?.id] == [1, 2, nil])
        #expect(queue.waits(longerThan: .zero, now: .now).map(\.id).sorted() == [3, 4, 5])
        queue.setShares(["b.example": HostShare(slots: 1, parts: 2)])
        #expect(queue.start(now: now)?.id == 5)
        queue.setShares(nil)
        #expect([queue.start(now: now)?.id, queue.start(now: now)?.id] == [3, 4])
    }

    @Test func aHostWithoutAStateIsStillKnownToHaveAnswered() throws {
        var queue = WaitingQueue(limits: HostLimits(perHost: 4))
        let a = try host("a.example")
        queue.insert(queued(1, a))
        // An end that tells nothing of the host.
        #expect(drain(&queue) == [1])
        queue.insert(queued(2, a))
        #expect(queue.hasNeverResponded("a.example"))
        #expect(queue.start(now: now)?.id == 2)
        queue.finished(host: "none.example", start: now, now: now)
        queue.finished(host: "a.example", .answered, start: now, now: now)
        #expect(queue.hosts["a.example"] == nil)
        queue.insert(queued(3, a))
        #expect(!queue.hasNeverResponded("a.example"))
    }
}

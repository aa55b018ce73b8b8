import Core
import Jobs
import TestSupport
import Testing

/// Random legal operations on two workers' stores, and what a person would expect to count afterwards.
private struct RandomWalk {
    let queue: Queue
    let others: JobStore
    let other: Int64
    var random: SeededGenerator
    var held: [ClaimedItem] = []
    var open: [JobID] = []
    /// Items that were accepted and not deleted.
    var accepted = 0

    mutating func step() async throws {
        switch Int.random(in: 0..<20, using: &random) {
        case 0...2: try await enqueue()
        case 3...6: try await claim()
        case 7...12: try await finish()
        case 13: try await onSomeJob { try await $0.control.pause(job: $1) }
        case 14: try await onSomeJob { try await $0.control.resume(job: $1) }
        case 15: try await onSomeJob { try await $0.control.cancel(job: $1) }
        case 16: try await onSomeJob { _ = try await $0.control.retry(job: $1) }
        case 17: try await delete()
        case 18: try await takeBack()
        default:
            queue.clock.advance(Int64.random(in: 0...5_000, using: &random))
            _ = try await queue.store.queue.promoteDue(limit: 5)
        }
    }

    private mutating func enqueue() async throws {
        let count = Int.random(in: 0...6, using: &random)
        // The same few URLs come again and again, so that the blacklist and the index matter.
        let urls = (0..<count).map { _ in
            "https://h\(Int.random(in: 0...2, using: &random)).example/\(Int.random(in: 0...9, using: &random))"
        }
        let job = NewJob(
            urls: urls, priority: Int.random(in: -2...2, using: &random),
            order: [nil, .fifo, .lifo][Int.random(in: 0...2, using: &random)],
            dedupeKey: Bool.random(using: &random) ? "k\(Int.random(in: 0...1, using: &random))" : nil)
        // Retrying a job whose key is taken by now is refused; the step then comes to nothing.
        guard let id = try await queue.store.queue.enqueue(job) else { return }
        open.append(id)
        accepted += count
    }

    private mutating func claim() async throws {
        let limit = Int.random(in: 1...5, using: &random)
        let isOther = Bool.random(using: &random)
        held += try await (isOther ? others : queue.store).queue.claim(
            limit: limit, worker: isOther ? other : queue.worker
        )
        .items
    }

    private mutating func finish() async throws {
        held.shuffle(using: &random)
        var group: [(item: ClaimedItem, ending: ItemEnding)] = []
        for item in held.prefix(Int.random(in: 0...3, using: &random)) { group.append((item, ending(of: item))) }
        try await queue.store.queue.finish(group)
        // Sometimes a worker finishes an item a second time.
        if Bool.random(using: &random) { held.removeFirst(group.count) }
    }

    private mutating func ending(of item: ClaimedItem) -> ItemEnding {
        let now = queue.clock.now
        switch Int.random(in: 0...6, using: &random) {
        case 0: return item.completion(clock: queue.clock)
        case 1: return item.completion(cached: true, clock: queue.clock)
        case 2: return .failed(FailureClass.allNamed.randomElement(using: &random) ?? .dns)
        case 3: return item.blacklisting.map { .blacklisted($0) } ?? .failed(.http(404))
        case 4:
            return .retry(
                at: now + Int64.random(in: 0...3_000, using: &random), Failure(.dns, "m"), blockingHost: true)
        case 5: return .wait(until: now + Int64.random(in: 0...3_000, using: &random))
        default: return .release
        }
    }

    private mutating func onSomeJob(_ action: (JobStore, JobID) async throws -> Void) async throws {
        guard let job = open.randomElement(using: &random) else { return }
        do {
            try await action(queue.store, job)
        } catch let error as JobsError where error.code == .refused || error.code == .notFound {
            // Not every move is legal; what matters is that a refused one changes nothing.
        }
    }

    private mutating func delete() async throws {
        guard let job = open.randomElement(using: &random) else { return }
        let condition =
            Bool.random(using: &random)
            ? "id = (SELECT min(id) FROM items WHERE job = \(job))" : "job = \(job) AND state = 'failed'"
        let isWhole = Int.random(in: 0...3, using: &random) == 0
        accepted -= try await queue.delete(isWhole ? "jobs" : "items", where: isWhole ? "id = \(job)" : condition)
        if isWhole { open.removeAll { $0 == job } }
    }

    private mutating func takeBack() async throws {
        if Bool.random(using: &random) { queue.clock.advance(61_000) }
        _ = try await queue.store.workers.takeBackDeadLeases(myself: queue.worker)
    }

    /// Every accepted item is somewhere, and a job says that it has ended exactly when it has.
    func check() async throws {
        #expect(try await queue.store.maintenance.inconsistencies() == [])
        let jobs = try await queue.store.reports.summary(jobs: Set(open))
        #expect(jobs.map(\.job) == open.sorted())
        #expect(jobs.reduce(0) { $0 + $1.total } == accepted)
        for job in jobs where job.queued + job.active + job.delayed == 0 && job.total > 0 {
            #expect(!job.state.isOpen, "job \(job.job) has nothing left to do and is \(job.state)")
        }
    }
}

@Suite("Counters", .timeLimit(.minutes(15)))
struct PropertyTests {
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `The counters equal the numbers of the items after random operations`(_ seed: UInt64) async throws {
        try await withQueue { queue in
            let others = try JobStore(path: queue.path, now: { [clock = queue.clock] in clock.now })
            var walk = RandomWalk(
                queue: queue, others: others, other: try await others.workers.register(host: "test", pid: 2),
                random: SeededGenerator(seed: seed))
            for step in 0..<300 {
                try await walk.step()
                if step % 10 == 0 { try await walk.check() }
            }
            try await walk.check()
            try await others.close()
        }
    }
}

import Dispatch
import Glibc
import Testing

@testable import PrefetchWorker

@Suite("Queues, locks and bells", .timeLimit(.minutes(15)))
struct PrimitivesTests {
    @Test func `A work queue returns its elements in order, and nil once it is closed and empty`() async {
        let queue = WorkQueue<Int>()
        for number in 1...3 { #expect(queue.put(number)) }
        queue.close()
        #expect(queue.isClosed)
        #expect(!queue.put(4))
        #expect([await queue.next(), await queue.next(), await queue.next(), await queue.next()] == [1, 2, 3, nil])
    }

    @Test func `Waiting consumers get the elements of a queue, and nil when it closes`() async {
        let queue = WorkQueue<Int>()
        let got = await withTaskGroup { group in
            for _ in 0..<4 { group.addTask { await queue.next() } }
            queue.put(1)
            queue.put(2)
            queue.close()
            return await group.reduce(into: [Int?]()) { $0.append($1) }
        }
        #expect(got.compactMap { $0 }.sorted() == [1, 2])
        #expect(got.count { $0 == nil } == 2)
    }

    @Test func `Available elements are taken from a queue without waiting`() {
        let queue = WorkQueue<Int>()
        for number in 1...5 { queue.put(number) }
        #expect(queue.takeAvailable(0) == [])
        #expect(queue.takeAvailable(2) == [1, 2])
        #expect(queue.takeAvailable(9) == [3, 4, 5])
        #expect(queue.takeAvailable(9) == [])
    }

    @Test func `Concurrent producers and consumers of a queue lose no element`() async {
        let queue = WorkQueue<Int>()
        let all = await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    var mine: [Int] = []
                    while let number = await queue.next() { mine.append(number) }
                    return mine
                }
            }
            await withTaskGroup { putters in
                for putter in 0..<4 {
                    putters.addTask { for number in 0..<500 { queue.put(putter * 500 + number) } }
                }
            }
            queue.close()
            return await group.reduce(into: [Int]()) { $0 += $1 }
        }
        #expect(all.sorted() == Array(0..<2_000))
    }

    @Test func `A key is held by one task at a time, and handed on in the order of requests`() async {
        let lock = KeyedLock()
        let order = Shared<[Int]>([])
        await lock.lock("a")
        await withTaskGroup { group in
            for number in 0..<5 {
                group.addTask {
                    await lock.lock("a")
                    order.withLock { $0.append(number) }
                    lock.unlock("a")
                }
                // Each has asked before the next does.
                try? await Task.sleep(for: .milliseconds(20))
            }
            #expect(order.withLock { $0 } == [])
            lock.unlock("a")
        }
        #expect(order.withLock { $0 } == [0, 1, 2, 3, 4])
        #expect(lock.isIdle)
    }

    @Test func `Locks of different keys don't wait for each other`() async {
        let lock = KeyedLock()
        await lock.lock("a")
        await lock.lock("b")
        lock.unlock("a")
        await lock.lock("a")
        lock.unlock("a")
        #expect(!lock.isIdle)
        lock.unlock("b")
        #expect(lock.isIdle)
    }

    @Test func `Under load two tasks never hold a key at once`() async {
        let lock = KeyedLock()
        let inside = Shared((now: 0, most: 0, total: 0))
        await withTaskGroup { group in
            for _ in 0..<200 {
                group.addTask {
                    await lock.lock("a")
                    inside.withLock {
                        $0.now += 1
                        $0.most = max($0.most, $0.now)
                        $0.total += 1
                    }
                    await Task.yield()
                    inside.withLock { $0.now -= 1 }
                    lock.unlock("a")
                }
            }
        }
        #expect(inside.withLock { [$0.now, $0.most, $0.total] } == [0, 1, 200])
        #expect(lock.isIdle)
    }

    @Test func `A wakeup before the wait is kept once`() async {
        let bell = Wakeup()
        bell.ring()
        bell.ring()
        await bell.wait()
        let isAwake = Shared(false)
        async let sleeper: Void = {
            await bell.wait()
            isAwake.withLock { $0 = true }
        }()
        try? await Task.sleep(for: .milliseconds(30))
        #expect(!isAwake.withLock { $0 })
        bell.ring()
        await sleeper
    }

    @Test func `A requested stop is seen by waiting and later tasks`() async {
        let stop = StopSignal()
        let told = Shared(0)
        stop.whenRequested { told.withLock { $0 += 1 } }
        #expect(!stop.isRequested)
        async let waiter: Void = stop.wait()
        stop.request()
        stop.request()
        await waiter
        await stop.wait()
        #expect(stop.isRequested)
        stop.whenRequested { told.withLock { $0 += 10 } }
        #expect(told.withLock { $0 } == 11)
    }

    @Test func `Blocked calls of a blocking queue delay neither tasks nor Dispatch`() async {
        let queue = BlockingQueue("test", width: 4)
        let gate = DispatchSemaphore(value: 0)
        await withTaskGroup { group in
            for _ in 0..<300 {
                group.addTask {
                    await queue.run { gate.wait() }
                }
            }
            // With all places blocked, tasks open the gate one by one, each by way of Dispatch.
            for _ in 0..<300 {
                group.addTask {
                    await withCheckedContinuation { done in
                        DispatchQueue(label: "opener").async {
                            gate.signal()
                            done.resume()
                        }
                    }
                }
            }
        }
    }

    @Test func `A blocking queue runs no more calls at once than its width`() async {
        let queue = BlockingQueue("test", width: 2)
        let inside = Shared((now: 0, most: 0))
        await withTaskGroup { group in
            for _ in 0..<10 {
                group.addTask {
                    await queue.run {
                        inside.withLock {
                            $0.now += 1
                            $0.most = max($0.most, $0.now)
                        }
                        usleep(2_000)
                        inside.withLock { $0.now -= 1 }
                    }
                }
            }
        }
        #expect(inside.withLock { $0.now } == 0)
        #expect(inside.withLock { $0.most } <= 2)
    }

    /// A host that has used its burst gets no second one because many other hosts fail, too.
    @Test func `A host's retries are limited however many other hosts there are`() {
        let budget = RetryBudget()
        let burst = Int(RetryBudget.burst)
        for _ in 0..<(burst - 1) { #expect(budget.take("busy", now: 1_000) == 0) }
        for number in 0..<9_999 { #expect(budget.take("\(number)", now: 1_000) == 0) }
        // Those have one retry less than a full burst; they are full again after a second, and forgotten.
        for number in 10_000..<10_010 { #expect(budget.take("\(number)", now: 2_000) == 0) }
        let earned = Int(RetryBudget.perSecond)
        for _ in 0...earned { #expect(budget.take("busy", now: 2_000) == 0) }
        #expect(budget.take("busy", now: 2_000) > 0)
    }
}

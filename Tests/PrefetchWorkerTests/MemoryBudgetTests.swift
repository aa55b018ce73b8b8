import Synchronization
import Testing

@testable import PrefetchWorker

@Suite(.timeLimit(.minutes(15)))
struct MemoryBudgetTests {
    @Test func aMemoryBudgetIsNeverExceededAndServesEveryTask() async {
        let budget = MemoryBudget(bytes: 100)
        let held = Held()
        await withTaskGroup { group in
            for number in 0..<200 {
                let bytes = [10, 60, 100, 0, 35][number % 5]
                group.addTask {
                    await budget.holding(bytes) {
                        held.take(bytes)
                        await Task.yield()
                        held.giveBack(bytes)
                    }
                }
            }
        }
        let end = held.counts
        #expect(end.now == 0 && end.most <= 100 && end.turns == 200)
    }

    @Test func aRequestLargerThanTheBudgetTakesAllOfIt() async {
        let budget = MemoryBudget(bytes: 10)
        #expect(await budget.holding(1_000) { 7 } == 7)
        #expect(await budget.holding(10) { 8 } == 8)
    }
}

private final class Held: Sendable {
    private let state = Mutex((now: 0, most: 0, turns: 0))

    var counts: (now: Int, most: Int, turns: Int) { state.withLock { $0 } }

    func take(_ bytes: Int) {
        state.withLock { $0 = ($0.now + bytes, max($0.most, $0.now + bytes), $0.turns + 1) }
    }

    func giveBack(_ bytes: Int) { state.withLock { $0.now -= bytes } }
}

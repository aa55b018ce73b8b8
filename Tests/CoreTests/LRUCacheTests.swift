import Core
import Testing

@Suite("Least recently used", .timeLimit(.minutes(15)))
struct LRUCacheTests {
    @Test func theLeastRecentlyUsedGoesFirst() {
        var cache = LRUCache<String, Int>(countLimit: 3)
        for (number, key) in ["a", "b", "c"].enumerated() { cache.insert(number, for: key) }
        #expect(cache.value("a") == 0)
        cache.insert(3, for: "d")
        #expect(cache.peek("b") == nil)
        #expect(["a", "c", "d"].map { cache.peek($0) } == [0, 2, 3])
        #expect(cache.count == 3)
    }

    @Test func peekingIsNoUse() {
        var cache = LRUCache<String, Int>(countLimit: 2)
        cache.insert(1, for: "a")
        cache.insert(2, for: "b")
        #expect(cache.peek("a") == 1)
        cache.insert(3, for: "c")
        #expect(cache.peek("a") == nil && cache.peek("b") == 2)
    }

    @Test func theLeastRecentlyUsedEntriesAreRemovedBeyondTheCostLimit() {
        var cache = LRUCache<Int, String>(countLimit: 100, costLimit: 10)
        for key in 0..<5 { cache.insert("\(key)", for: key, cost: 3) }
        #expect(cache.count == 3 && cache.cost == 9)
        cache.insert("again", for: 3, cost: 1)
        #expect(cache.count == 3 && cache.cost == 7)
        cache.insert("too large", for: 9, cost: 11)
        #expect(cache.count == 0 && cache.cost == 0)
    }

    @Test func aRemovedEntryIsForgotten() {
        var cache = LRUCache<Int, Int>(countLimit: 10)
        for key in 0..<10 { cache.insert(key, for: key, cost: 1) }
        #expect(cache.remove(0) == 0 && cache.remove(0) == nil)
        cache.removeAll { $0.isMultiple(of: 2) }
        #expect((0..<10).filter { cache.peek($0) != nil } == [1, 3, 5, 7, 9])
        #expect(cache.cost == 5)
        cache.removeAll()
        #expect(cache.count == 0 && cache.cost == 0)
        cache.insert(1, for: 1)
        #expect(cache.value(1) == 1)
    }

    /// Compared with a list in the order of use.
    @Test func anyOrderOfCallsKeepsTheOrderOfUse() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<50 {
            var cache = LRUCache<Int, Int>(countLimit: 5)
            var expected: [Int] = []
            for _ in 0..<200 {
                let key = Int.random(in: 0..<12, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    #expect(cache.remove(key) == (expected.contains(key) ? key : nil))
                    expected.removeAll { $0 == key }
                case 1:
                    #expect(cache.value(key) == (expected.contains(key) ? key : nil))
                    if expected.contains(key) { expected = expected.filter { $0 != key } + [key] }
                default:
                    cache.insert(key, for: key)
                    expected = (expected.filter { $0 != key } + [key]).suffix(5)
                }
                #expect((0..<12).filter { cache.peek($0) != nil } == expected.sorted())
            }
        }
    }
}

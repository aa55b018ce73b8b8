import Testing

@testable import PrefetchWorker

@Suite("Jobs in hand", .timeLimit(.minutes(15)))
struct InFlightCountsTests {
    @Test func `A job with enough items in flight is stuck until one of its items moves on`() {
        let hand = InFlightCounts()
        for _ in 0..<InFlightCounts.enough {
            #expect(hand.stuck(at: 0) == [:])
            hand.began(1)
            hand.began(2)
        }
        #expect(hand.stuck(at: 0) == [1: 128, 2: 128])
        #expect(hand.count == 256)
        #expect(hand.countInMotion == 0)
        hand.cameThrough(1, at: 5)
        hand.began(1)
        #expect(hand.stuck(at: 5 + InFlightCounts.moving) == [2: 128])
        #expect(hand.stuck(at: 6 + InFlightCounts.moving) == [1: 128, 2: 128])
    }

    @Test func `Counts are empty when all items have moved on`() {
        let hand = InFlightCounts()
        for _ in 0..<InFlightCounts.enough { hand.began(1) }
        for _ in 0..<InFlightCounts.enough { hand.cameThrough(1, at: 0) }
        #expect(hand.count == 0)
        #expect(hand.stuck(at: 10_000) == [:])
    }
}

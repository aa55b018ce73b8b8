/// A request in flight at one part of a host.
struct Request {
    let tenure: Int
    let part: Int
    /// The part's place among those of its bucket.
    let index: Int
}

/// The requests in flight, by the tick in which each of them ends. A wheel of lists: a run has 93 million requests, and
/// adding or ending one costs the same however many there are.
struct RequestWheel {
    private struct Entry {
        var request: Request
        /// The next entry that ends in the same tick; -1 if there is none.
        var next: Int
    }

    /// More ticks than `Model.deadline`, so that a slot has requests of one tick only.
    private static let slots = 8192
    private var entries: [Entry] = []
    private var free: [Int] = []
    private var firstOfSlot = [Int](repeating: -1, count: slots)

    mutating func add(_ request: Request, endingAt tick: Tick) {
        let slot = tick % Self.slots
        let entry = Entry(request: request, next: firstOfSlot[slot])
        if let number = free.popLast() {
            entries[number] = entry
            firstOfSlot[slot] = number
        } else {
            firstOfSlot[slot] = entries.count
            entries.append(entry)
        }
    }

    /// Removes a request that ends in this tick, the last one added first.
    mutating func popEnded(at tick: Tick) -> Request? {
        let slot = tick % Self.slots
        let number = firstOfSlot[slot]
        guard number >= 0 else { return nil }
        firstOfSlot[slot] = entries[number].next
        free.append(number)
        return entries[number].request
    }
}

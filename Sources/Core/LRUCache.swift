/// Values by key. When there are too many, or their costs add up to too much, the cache removes the least recently
/// used.
package struct LRUCache<Key: Hashable, Value> {
    /// A place in the list from the least to the most recently used.
    private struct Slot {
        let key: Key
        let value: Value
        let cost: Int64
        var older: Int?
        var newer: Int?
    }

    private let countLimit: Int
    private let costLimit: Int64
    private var places: [Key: Int] = [:]
    /// Nil for a place that is free.
    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var oldest: Int?
    private var newest: Int?
    /// The sum of all costs.
    package private(set) var cost: Int64 = 0

    package init(countLimit: Int, costLimit: Int64 = .max) {
        self.countLimit = countLimit
        self.costLimit = costLimit
    }

    package var count: Int { places.count }

    /// Reads a value without marking it as used.
    package func peek(_ key: Key) -> Value? { places[key].flatMap { slots[$0]?.value } }

    /// The value of a key; marks it as the most recently used.
    package mutating func value(_ key: Key) -> Value? {
        guard let place = places[key] else { return nil }
        if place != newest {
            unlink(place)
            link(place)
        }
        return slots[place]?.value
    }

    /// Adds or replaces a value, then removes others until the limits hold. A value that exceeds the limits alone is
    /// removed too.
    package mutating func insert(_ value: Value, for key: Key, cost: Int64 = 0) {
        remove(key)
        let place = free.popLast() ?? slots.count
        if place == slots.count { slots.append(nil) }
        slots[place] = Slot(key: key, value: value, cost: cost)
        places[key] = place
        self.cost += cost
        link(place)
        while count > countLimit || self.cost > costLimit, let last = oldest.flatMap({ slots[$0] }) { remove(last.key) }
    }

    @discardableResult
    package mutating func remove(_ key: Key) -> Value? {
        guard let place = places.removeValue(forKey: key), let slot = slots[place] else { return nil }
        unlink(place)
        slots[place] = nil
        free.append(place)
        cost -= slot.cost
        return slot.value
    }

    package mutating func removeAll() { self = LRUCache(countLimit: countLimit, costLimit: costLimit) }

    package mutating func removeAll(where isUnwanted: (Value) -> Bool) {
        for case let slot? in slots where isUnwanted(slot.value) { remove(slot.key) }
    }

    /// Makes a place the most recently used one.
    private mutating func link(_ place: Int) {
        slots[place]?.older = newest
        slots[place]?.newer = nil
        if let newest { slots[newest]?.newer = place } else { oldest = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        guard let slot = slots[place] else { return }
        if let older = slot.older { slots[older]?.newer = slot.newer } else { oldest = slot.newer }
        if let newer = slot.newer { slots[newer]?.older = slot.older } else { newest = slot.older }
    }
}

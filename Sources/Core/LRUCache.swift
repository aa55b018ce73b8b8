/// Values by key. When there are too many, or their costs add up to too much, the cache removes the least recently
/// used.
package struct LRUCache<Key: Hashable, Value> {
    /// An entry of the list from the least to the most recently used.
    private struct Slot {
        let key: Key
        let value: Value
        let cost: Int64
        var older: Int?
        var newer: Int?
    }

    private let countLimit: Int
    private let costLimit: Int64
    private var indices: [Key: Int] = [:]
    /// Nil where an index is free.
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

    package var count: Int { indices.count }

    /// Reads a value without marking it as used.
    package func peek(_ key: Key) -> Value? { indices[key].flatMap { slots[$0]?.value } }

    /// The value of a key; marks it as the most recently used.
    package mutating func value(_ key: Key) -> Value? {
        guard let index = indices[key] else { return nil }
        if index != newest {
            unlink(index)
            link(index)
        }
        return slots[index]?.value
    }

    /// Adds or replaces a value, then removes others until the limits hold. A value that exceeds the limits alone is
    /// removed too.
    package mutating func insert(_ value: Value, for key: Key, cost: Int64 = 0) {
        remove(key)
        let index = free.popLast() ?? slots.count
        if index == slots.count { slots.append(nil) }
        slots[index] = Slot(key: key, value: value, cost: cost)
        indices[key] = index
        self.cost += cost
        link(index)
        while count > countLimit || self.cost > costLimit, let last = oldest.flatMap({ slots[$0] }) { remove(last.key) }
    }

    @discardableResult
    package mutating func remove(_ key: Key) -> Value? {
        guard let index = indices.removeValue(forKey: key), let slot = slots[index] else { return nil }
        unlink(index)
        slots[index] = nil
        free.append(index)
        cost -= slot.cost
        return slot.value
    }

    package mutating func removeAll() { self = LRUCache(countLimit: countLimit, costLimit: costLimit) }

    package mutating func removeAll(where isUnwanted: (Value) -> Bool) {
        for case let slot? in slots where isUnwanted(slot.value) { remove(slot.key) }
    }

    /// Makes an entry the most recently used one.
    private mutating func link(_ index: Int) {
        slots[index]?.older = newest
        slots[index]?.newer = nil
        if let newest { slots[newest]?.newer = index } else { oldest = index }
        newest = index
    }

    private mutating func unlink(_ index: Int) {
        guard let slot = slots[index] else { return }
        if let older = slot.older { slots[older]?.newer = slot.newer } else { oldest = slot.newer }
        if let newer = slot.newer { slots[newer]?.older = slot.older } else { newest = slot.older }
    }
}

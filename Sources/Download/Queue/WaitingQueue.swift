import HeapModule

/// The requests that wait, in the order they may start: by priority, then rank, passing over hosts that are busy.
///
/// Each host has a heap of its own; the hosts that may start something stand in a heap of heads. Whatever has been
/// re-ranked, cancelled or overtaken is left in the heaps and recognised when it comes up, so every operation is
/// O(log n). A host parked because it is saturated or blocked holds up nobody else.
struct WaitingQueue {
    private var waiting: [UInt64: Waiting] = [:]
    private var hosts: [String: Host] = [:]
    private var heads = Heap<Head>()
    private var blocks = Heap<Block>()
    private var named: [Int64: Set<UInt64>] = [:]
    private var perHost: Int

    init(perHost: Int) {
        self.perHost = perHost
    }

    var count: Int { waiting.count }

    /// When the next blocked host is free again.
    var nextRelease: ContinuousClock.Instant? { blocks.min?.until }

    mutating func insert(_ ticket: Ticket) {
        let request = ticket.request
        let place = Place(priority: request.priority, rank: request.rank, ticket: ticket.id, version: 0)
        waiting[ticket.id] = Waiting(ticket: ticket, place: place)
        if let name = request.id { named[name, default: []].insert(ticket.id) }
        enqueue(place, host: ticket.host)
    }

    mutating func remove(_ id: UInt64) -> Ticket? {
        guard let ticket = waiting.removeValue(forKey: id)?.ticket else { return nil }
        if let name = ticket.request.id {
            named[name]?.remove(id)
            if named[name]?.isEmpty == true { named[name] = nil }
        }
        hosts[ticket.host]?.live -= 1
        forget(ticket.host)
        return ticket
    }

    /// Takes out everything that waits; what runs goes on counting against its host.
    mutating func removeWaiting() -> [Ticket] {
        waiting.keys.compactMap { remove($0) }
    }

    mutating func removeAll() -> [Ticket] {
        let tickets = waiting.values.map(\.ticket)
        self = WaitingQueue(perHost: perHost)
        return tickets
    }

    /// Moves what the caller calls `name`; what is already running stays as it is.
    mutating func update(priority: Int, rank: Int64, for name: Int64) {
        for id in named[name] ?? [] {
            guard let old = waiting[id] else { continue }
            let place = Place(priority: priority, rank: rank, ticket: id, version: old.place.version + 1)
            waiting[id]?.place = place
            hosts[old.ticket.host]?.live -= 1
            enqueue(place, host: old.ticket.host)
        }
    }

    /// The next request that may start now; its host counts it as running until ``finished(host:)``.
    mutating func start(now: ContinuousClock.Instant) -> Ticket? {
        release(now)
        while let head = heads.popMin() {
            // A host that may not start now is offered again when it may.
            guard mayStart(head.host), first(of: head.host) == head.place else { continue }
            hosts[head.host]?.places.removeMin()
            hosts[head.host]?.running += 1
            let ticket = remove(head.place.ticket)
            offer(head.host)
            if let ticket { return ticket }
        }
        return nil
    }

    mutating func finished(host: String) {
        hosts[host]?.running -= 1
        offer(host)
        forget(host)
    }

    mutating func block(_ host: String, until: ContinuousClock.Instant) {
        let until = max(until, hosts[host]?.blockedUntil ?? until)
        hosts[host, default: Host()].blockedUntil = until
        blocks.insert(Block(until: until, host: host))
    }

    func blockedUntil(_ host: String) -> ContinuousClock.Instant? { hosts[host]?.blockedUntil }

    mutating func setPerHost(_ limit: Int) {
        perHost = limit
        for host in hosts.keys { offer(host) }
    }
}

extension WaitingQueue {
    private struct Waiting {
        let ticket: Ticket
        var place: Place
    }

    private struct Host {
        var places = Heap<Place>()
        /// Places that still stand for something; the others are left over.
        var live = 0
        var running = 0
        var blockedUntil: ContinuousClock.Instant?
    }

    private struct Place: Comparable {
        let priority: Int
        let rank: Int64
        /// Counts up, so that equals start in the order they came.
        let ticket: UInt64
        let version: Int

        static func < (a: Place, b: Place) -> Bool {
            if a.priority != b.priority { return a.priority > b.priority }
            if a.rank != b.rank { return a.rank < b.rank }
            if a.ticket != b.ticket { return a.ticket < b.ticket }
            return a.version < b.version
        }
    }

    private struct Head: Comparable {
        let place: Place
        let host: String

        static func < (a: Head, b: Head) -> Bool { a.place < b.place }
    }

    private struct Block: Comparable {
        let until: ContinuousClock.Instant
        let host: String

        static func < (a: Block, b: Block) -> Bool { a.until < b.until }
    }

    private mutating func enqueue(_ place: Place, host: String) {
        hosts[host, default: Host()].places.insert(place)
        hosts[host]?.live += 1
        if first(of: host) == place { offer(host) }
    }

    /// The place that is next at a host, after throwing out left-overs before it.
    private mutating func first(of host: String) -> Place? {
        compact(host)
        while let place = hosts[host]?.places.min {
            if waiting[place.ticket]?.place == place { return place }
            hosts[host]?.places.removeMin()
        }
        return nil
    }

    /// Left-overs deep in a heap never come up; thousands of cancelled requests must not stay in memory for that.
    private mutating func compact(_ host: String) {
        guard let all = hosts[host]?.places, all.count > 2 * (hosts[host]?.live ?? 0) + 64 else { return }
        hosts[host]?.places = Heap(all.unordered.filter { waiting[$0.ticket]?.place == $0 })
    }

    /// Puts a host's next request forward, if the host may start one.
    private mutating func offer(_ host: String) {
        guard mayStart(host), let place = first(of: host) else { return }
        heads.insert(Head(place: place, host: host))
    }

    // A function of its own, so that no copy of the host lives while its heap is changed: that would copy the heap.
    private func mayStart(_ host: String) -> Bool {
        guard let state = hosts[host] else { return false }
        return state.running < perHost && state.blockedUntil == nil
    }

    private mutating func release(_ now: ContinuousClock.Instant) {
        while let block = blocks.min, block.until <= now {
            blocks.removeMin()
            // A later block of the same host has its own entry.
            guard let until = hosts[block.host]?.blockedUntil, until <= now else { continue }
            hosts[block.host]?.blockedUntil = nil
            offer(block.host)
            forget(block.host)
        }
    }

    private mutating func forget(_ host: String) {
        guard let state = hosts[host], state.live == 0, state.running == 0, state.blockedUntil == nil else { return }
        hosts.removeValue(forKey: host)
    }
}

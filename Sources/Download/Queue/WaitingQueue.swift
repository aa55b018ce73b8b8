/// The waiting requests in the order in which they may start: by priority; among hosts of the same priority, the host
/// with the fewest transfers first; then by rank. Hosts that may not start a request are skipped.
///
/// Each host has a heap of its requests; another heap holds the head of each host that may start one. Entries that were
/// re-ranked, cancelled or overtaken stay in the heaps and are dropped when they come up, so every operation is O(log
/// n). One start of sixteen goes to the request that has waited longest, at any priority, so that an endless stream of
/// urgent requests delays the others and never starves them.
struct WaitingQueue {
    static let turnsPerElder = 16
    var waiting: [UInt64: Waiting] = [:]
    var hosts: [String: Host] = [:]
    private(set) var heads = CountedHeap<Head>()
    private(set) var ages = CountedHeap<UInt64>()
    private(set) var releases = CountedHeap<Release>()
    private var named: [Int64: Set<UInt64>] = [:]
    private var limits: HostLimits
    private var limitsOfHosts: [String: HostLimits] = [:]
    private let circuitBreaker: CircuitBreakerRules
    var shares: [String: HostShare]?
    /// Hosts that have answered, kept even if the queue forgets their other state.
    var answered: Set<String> = []
    private var turn = 0

    init(limits: HostLimits, circuitBreaker: CircuitBreakerRules = CircuitBreakerRules()) {
        self.limits = limits
        self.circuitBreaker = circuitBreaker
    }

    var count: Int { waiting.count }

    /// Whether any host may be held back.
    var holdsBack: Bool { releases.count > 0 }

    /// When the next held-back host may start requests again.
    var nextRelease: ContinuousClock.Instant? { releases.min?.until }

    mutating func insert(_ queued: QueuedTransfer) {
        let request = queued.request
        let (priority, rank) = request.currentPosition?() ?? (request.priority, request.rank)
        let position = Position(priority: priority, rank: rank, id: queued.id, version: 0)
        waiting[queued.id] = Waiting(queued: queued, position: position, since: .now)
        ages.insert(queued.id)
        if let name = request.id { named[name, default: []].insert(queued.id) }
        enqueue(position, host: queued.host)
    }

    mutating func remove(_ id: UInt64) -> QueuedTransfer? {
        guard let queued = waiting.removeValue(forKey: id)?.queued else { return nil }
        if let name = queued.request.id {
            named[name]?.remove(id)
            if named[name]?.isEmpty == true { named[name] = nil }
        }
        hosts[queued.host]?.live -= 1
        forget(queued.host)
        return queued
    }

    /// Removes all waiting requests; running ones keep counting against their hosts.
    mutating func removeWaiting() -> [QueuedTransfer] { waiting.keys.compactMap { remove($0) } }

    mutating func removeAll() -> [QueuedTransfer] {
        let transfers = waiting.values.map(\.queued)
        self = WaitingQueue(limits: limits, circuitBreaker: circuitBreaker)
        return transfers
    }

    /// Re-ranks the waiting requests whose id is `name`.
    mutating func update(priority: Int, rank: Int64, for name: Int64) {
        for id in named[name] ?? [] {
            guard let old = waiting[id] else { continue }
            let position = Position(priority: priority, rank: rank, id: id, version: old.position.version + 1)
            waiting[id]?.position = position
            hosts[old.queued.host]?.live -= 1
            enqueue(position, host: old.queued.host)
        }
    }

    /// Whether a request whose id is `name` is waiting.
    func isWaiting(_ name: Int64) -> Bool { named[name]?.contains { waiting[$0] != nil } ?? false }

    /// Removes and returns the next request that may start now. Its host counts it as running until
    /// ``finished(host:_:start:now:)``.
    ///
    /// - Parameters:
    ///   - freeSlots: free slots, with those of stalled transfers, which only other hosts may take.
    ///   - isOvercommit: considers only hosts without a running transfer.
    mutating func start(now: ContinuousClock.Instant, freeSlots: Int = .max, isOvercommit: Bool = false)
        -> QueuedTransfer?
    {
        release(now)
        var passedOver: [Head] = []
        defer { for head in passedOver { heads.insert(head) } }
        while let head = firstHead(), isOvercommit ? head.running > 0 : hosts[head.host]?.stalled ?? 0 >= freeSlots {
            heads.removeMin()
            passedOver.append(head)
        }
        guard let head = firstHead() else { return nil }
        turn += isOvercommit ? 0 : 1
        if !isOvercommit, turn % Self.turnsPerElder == 0, let elder = elder(below: head.position.priority, freeSlots) {
            return begin(elder, now)
        }
        heads.removeMin()
        hosts[head.host]?.positions.removeMin()
        return begin(head.position.id, now)
    }

    private mutating func begin(_ id: UInt64, _ now: ContinuousClock.Instant) -> QueuedTransfer? {
        guard let queued = waiting[id]?.queued else { return nil }
        hosts[queued.host]?.running += 1
        hosts[queued.host]?.gate.started(at: now)
        if let held = hosts[queued.host]?.gate.heldUntil { releases.insert(Release(until: held, host: queued.host)) }
        _ = remove(id)
        offer(queued.host)
        return queued
    }

    mutating func finished(
        host: String, _ signal: HostSignal = .nothing, start: ContinuousClock.Instant, now: ContinuousClock.Instant,
    ) {
        hosts[host]?.running -= 1
        hosts[host]?.gate.learn(signal, start: start, now: now)
        if hosts[host]?.gate.hasAnswered == true, answered.count < 100_000 { answered.insert(host) }
        noteBlock(host)
        offer(host)
        forget(host)
    }

    mutating func block(_ host: String, until: ContinuousClock.Instant, _ reason: HostBlock) {
        makeHost(host)
        hosts[host]?.gate.block(until: until, reason)
        noteBlock(host)
    }

    mutating func restore(_ host: String, window: Double?, circuitOpenCount: Int) {
        makeHost(host)
        hosts[host]?.gate.restore(window: window, circuitOpenCount: circuitOpenCount)
    }

    func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        guard let gate = hosts[host]?.gate, let until = gate.blockedUntil, let reason = gate.block else { return nil }
        return (until, reason)
    }

    /// - Parameter special: hosts with limits of their own.
    mutating func setLimits(_ limits: HostLimits, special: [String: HostLimits]) {
        self.limits = limits
        limitsOfHosts = special
        for host in hosts.keys {
            hosts[host]?.gate.setLimits(special[host] ?? limits)
            offer(host)
        }
    }
}

extension WaitingQueue {
    struct Waiting {
        let queued: QueuedTransfer
        var position: Position
        let since: ContinuousClock.Instant
    }

    /// A class, so that changing one number copies neither the other fields nor the heap.
    final class Host {
        var gate: HostGate
        var positions = CountedHeap<Position>()
        /// Entries that are still valid; the heap's other entries are left-overs.
        var live = 0
        var running = 0
        var stalled = 0

        init(gate: HostGate) { self.gate = gate }
    }

    struct Position: Comparable {
        let priority: Int
        let rank: Int64
        /// Increases, so that equal requests start in the order in which they came.
        let id: UInt64
        let version: Int

        static func < (a: Position, b: Position) -> Bool {
            if a.priority != b.priority { return a.priority > b.priority }
            if a.rank != b.rank { return a.rank < b.rank }
            if a.id != b.id { return a.id < b.id }
            return a.version < b.version
        }
    }

    struct Head: Comparable {
        let position: Position
        let host: String
        /// The host's running transfers when this head was made.
        let running: Int

        static func < (a: Head, b: Head) -> Bool {
            if a.position.priority != b.position.priority { return a.position.priority > b.position.priority }
            if a.running != b.running { return a.running < b.running }
            return a.position < b.position
        }
    }

    struct Release: Comparable {
        let until: ContinuousClock.Instant
        let host: String

        static func < (a: Release, b: Release) -> Bool { a.until < b.until }
    }

    mutating func makeHost(_ host: String) {
        guard hosts[host] == nil else { return }
        var gate = HostGate(limits: limitsOfHosts[host] ?? limits, circuitBreaker: circuitBreaker)
        gate.share = shares.map { $0[host] ?? .none }
        if answered.contains(host) { gate.noteAnswered() }
        hosts[host] = Host(gate: gate)
    }

    private mutating func enqueue(_ position: Position, host: String) {
        makeHost(host)
        hosts[host]?.positions.insert(position)
        hosts[host]?.live += 1
        if first(of: host) == position { offer(host) }
    }

    /// The next entry of a host, after dropping left-overs before it.
    private mutating func first(of host: String) -> Position? {
        compact(host)
        while let position = hosts[host]?.positions.min {
            if waiting[position.id]?.position == position { return position }
            hosts[host]?.positions.removeMin()
        }
        return nil
    }

    /// Rebuilds a heap that has many left-overs. Left-overs deep in a heap never come up, and thousands of cancelled
    /// requests must not stay in memory.
    private mutating func compact(_ host: String) {
        guard let all = hosts[host]?.positions, all.count > 2 * (hosts[host]?.live ?? 0) + 64 else { return }
        hosts[host]?.positions = CountedHeap(
            all.unordered.filter { waiting[$0.id]?.position == $0 }, after: all.steps)
    }

    /// Adds the head of a host, if the host may start a request.
    mutating func offer(_ host: String) {
        guard mayStart(host), let position = first(of: host) else { return }
        heads.insert(Head(position: position, host: host, running: hosts[host]?.running ?? 0))
        guard heads.count > 4 * hosts.count + 1_024 else { return }
        heads = CountedHeap(heads.unordered.filter { hosts[$0.host]?.running == $0.running }, after: heads.steps)
    }

    /// The next head, after dropping outdated heads; each has an up-to-date one in the heap.
    private mutating func firstHead() -> Head? {
        while let head = heads.min {
            if hosts[head.host]?.running == head.running, mayStart(head.host), first(of: head.host) == head.position {
                return head
            }
            heads.removeMin()
        }
        return nil
    }

    /// The request that has waited longest of those that may start; nil unless it is less urgent than `priority`.
    private mutating func elder(below priority: Int, _ freeSlots: Int) -> UInt64? {
        if ages.count > 2 * waiting.count + 64 { ages = CountedHeap(waiting.keys, after: ages.steps) }
        var passedOver: [UInt64] = []
        defer { for id in passedOver { ages.insert(id) } }
        // Some hosts may be held back. Examining a few requests is enough, since this turn comes again.
        while passedOver.count < 32, let id = ages.popMin() {
            guard let found = waiting[id] else { continue }
            let host = found.queued.host
            if found.position.priority < priority, mayStart(host), hosts[host]?.stalled ?? 0 < freeSlots { return id }
            passedOver.append(id)
        }
        return nil
    }

    private func mayStart(_ host: String) -> Bool {
        guard let state = hosts[host] else { return false }
        return state.gate.mayStart(running: state.running)
    }

    mutating func noteBlock(_ host: String) {
        if let until = hosts[host]?.gate.blockedUntil { releases.insert(Release(until: until, host: host)) }
    }

    /// Releases the hosts whose block or pause is over, so that ``nextRelease`` advances.
    mutating func release(_ now: ContinuousClock.Instant) {
        while let release = releases.min, release.until <= now {
            releases.removeMin()
            // A later block of the same host has its own entry.
            hosts[release.host]?.gate.release(now)
            offer(release.host)
            forget(release.host)
        }
    }

    private mutating func forget(_ host: String) {
        guard let state = hosts[host], state.live == 0, state.running == 0 else { return }
        // The state of hosts is kept, up to a maximum number of hosts.
        guard state.gate.isPristine || (hosts.count > 10_000 && state.gate.block == nil) else { return }
        hosts.removeValue(forKey: host)
    }
}

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
        let host = makeHost(queued.host)
        waiting[queued.id] = Waiting(queued: queued, host: host, position: position, since: .now)
        ages.insert(queued.id)
        if let name = request.id { named[name, default: []].insert(queued.id) }
        enqueue(position, host)
    }

    mutating func remove(_ id: UInt64) -> QueuedTransfer? {
        guard let found = waiting.removeValue(forKey: id) else { return nil }
        let queued = found.queued
        if let name = queued.request.id {
            named[name]?.remove(id)
            if named[name]?.isEmpty == true { named[name] = nil }
        }
        found.host.live -= 1
        forget(found.host)
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
            old.host.live -= 1
            enqueue(position, old.host)
        }
    }

    /// Whether a request whose id is `name` is waiting.
    func isWaiting(_ name: Int64) -> Bool { named[name]?.contains { waiting[$0] != nil } ?? false }

    /// Removes and returns the next request that may start now. Its host counts it as running until
    /// ``finished(host:_:start:now:)``.
    ///
    /// - Parameters:
    ///   - freeSlots: free slots, including those of stalled transfers. A host may not take the slots of its own
    ///     stalled transfers.
    ///   - isOvercommit: considers only hosts without a running transfer.
    mutating func start(now: ContinuousClock.Instant, freeSlots: Int = .max, isOvercommit: Bool = false)
        -> QueuedTransfer?
    {
        release(now)
        var passedOver: [Head] = []
        defer { for head in passedOver { heads.insert(head) } }
        while let head = firstHead(), isOvercommit ? head.running > 0 : head.host.stalled >= freeSlots {
            heads.removeMin()
            passedOver.append(head)
        }
        guard let head = firstHead() else { return nil }
        turn += isOvercommit ? 0 : 1
        if !isOvercommit, turn % Self.turnsPerElder == 0, let elder = elder(below: head.position.priority, freeSlots) {
            return begin(elder, now)
        }
        heads.removeMin()
        head.host.positions.removeMin()
        return begin(head.position.id, now)
    }

    private mutating func begin(_ id: UInt64, _ now: ContinuousClock.Instant) -> QueuedTransfer? {
        guard let host = waiting[id]?.host else { return nil }
        host.running += 1
        host.gate.started(at: now)
        if let held = host.gate.heldUntil { releases.insert(Release(until: held, host: host.name)) }
        let queued = remove(id)
        offer(host)
        return queued
    }

    mutating func finished(
        host: String, _ signal: HostSignal = .nothing, start: ContinuousClock.Instant, now: ContinuousClock.Instant,
    ) {
        guard let host = hosts[host] else { return }
        host.running -= 1
        let hadAnswered = host.gate.hasAnswered
        host.gate.learn(signal, start: start, now: now)
        if host.gate.hasAnswered, !hadAnswered, answered.count < 100_000 { answered.insert(host.name) }
        noteBlock(host)
        offer(host)
        forget(host)
    }

    mutating func block(_ host: String, until: ContinuousClock.Instant, _ reason: HostBlock) {
        let host = makeHost(host)
        host.gate.block(until: until, reason)
        noteBlock(host)
    }

    mutating func restore(_ host: String, window: Double?, circuitOpenCount: Int) {
        makeHost(host).gate.restore(window: window, circuitOpenCount: circuitOpenCount)
    }

    func blocked(_ host: String) -> (until: ContinuousClock.Instant, reason: HostBlock)? {
        guard let gate = hosts[host]?.gate, let until = gate.blockedUntil, let reason = gate.block else { return nil }
        return (until, reason)
    }

    /// - Parameter special: hosts with limits of their own.
    mutating func setLimits(_ limits: HostLimits, special: [String: HostLimits]) {
        self.limits = limits
        limitsOfHosts = special
        for host in hosts.values {
            host.gate.setLimits(special[host.name] ?? limits)
            offer(host)
        }
    }
}

extension WaitingQueue {
    @discardableResult mutating func makeHost(_ name: String) -> Host {
        if let known = hosts[name] { return known }
        let gate = HostGate(limits: limitsOfHosts[name] ?? limits, circuitBreaker: circuitBreaker)
        gate.share = shares.map { $0[name] ?? .none }
        if answered.contains(name) { gate.noteAnswered() }
        let host = Host(name, gate: gate)
        hosts[name] = host
        return host
    }

    private mutating func enqueue(_ position: Position, _ host: Host) {
        host.positions.insert(position)
        host.live += 1
        if first(of: host) == position { offer(host) }
    }

    /// The next entry of a host, after dropping left-overs before it.
    private func first(of host: Host) -> Position? {
        compact(host)
        while let position = host.positions.min {
            if waiting[position.id]?.position == position { return position }
            host.positions.removeMin()
        }
        return nil
    }

    /// Rebuilds a heap that has many left-overs. Left-overs deep in a heap never come up, and thousands of cancelled
    /// requests must not stay in memory.
    private func compact(_ host: Host) {
        guard host.positions.count > 2 * host.live + 64 else { return }
        let valid = host.positions.unordered.filter { waiting[$0.id]?.position == $0 }
        host.positions = CountedHeap(valid, after: host.positions.steps)
    }

    /// Adds the head of a host, if the host may start a request.
    mutating func offer(_ host: Host) {
        guard host.mayStart, let position = first(of: host) else { return }
        heads.insert(Head(position: position, host: host, running: host.running))
        guard heads.count > 4 * hosts.count + 1_024 else { return }
        heads = CountedHeap(
            heads.unordered.filter { $0.host.live > 0 && $0.host.running == $0.running }, after: heads.steps)
    }

    /// The next head, after dropping outdated heads; each has an up-to-date one in the heap.
    private mutating func firstHead() -> Head? {
        while let head = heads.min {
            if head.host.running == head.running, head.host.mayStart, first(of: head.host) == head.position {
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
            if found.position.priority < priority, found.host.mayStart, found.host.stalled < freeSlots { return id }
            passedOver.append(id)
        }
        return nil
    }

    mutating func noteBlock(_ host: Host) {
        if let until = host.gate.blockedUntil { releases.insert(Release(until: until, host: host.name)) }
    }

    /// Releases the hosts whose block or pause is over, so that ``nextRelease`` advances.
    mutating func release(_ now: ContinuousClock.Instant) {
        while let release = releases.min, release.until <= now {
            releases.removeMin()
            // A later block of the same host has its own entry.
            guard let host = hosts[release.host] else { continue }
            host.gate.release(now)
            offer(host)
            forget(host)
        }
    }

    private mutating func forget(_ host: Host) {
        guard host.live == 0, host.running == 0 else { return }
        // The state of hosts is kept, up to a maximum number of hosts.
        guard host.gate.isPristine || (hosts.count > 10_000 && host.gate.block == nil) else { return }
        hosts.removeValue(forKey: host.name)
    }
}

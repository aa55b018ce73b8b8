internal import Core
internal import Download
internal import Jobs

/// The limits that the workers of one database share, and the items that wait for them.
extension HostKeeper {
    /// Writes this worker's demand for each host, and applies its share of the limits.
    func share(_ ledger: inout Ledger) async throws(JobsError) {
        let wasAlone = ledger.shares == nil
        try await shareOnce(&ledger)
        // The first call has taken all slots away, so the second one counts requests that can only become fewer.
        if wasAlone, ledger.shares != nil { try await shareOnce(&ledger) }
    }

    private func shareOnce(_ ledger: inout Ledger) async throws(JobsError) {
        let began = ContinuousClock.now
        let last = ledger.sharedAt
        if last.duration(to: began) >= ShareLease.duration {
            // This worker was suspended, or could not use the database. The others may have taken its slots.
            ledger.returnedAt = began
            if ledger.shares != nil { apply([:], &ledger) }
        }
        let countsSilent = ledger.returnedAt.map { $0.duration(to: began) < Self.returnTime } ?? false
        let now = try await store.database.cacheTime()
        let demands = demands(of: downloader.hosts, now, &ledger)
        var shares = try await store.hosts.takeShares(
            demands, worker: worker, isSharing: ledger.shares != nil, countsSilent: countsSilent,
            wasIdle: !ledger.hadLoad)
        ledger.hadLoad = !demands.isEmpty
        // If it was suspended during the call, it has no slots until the next one.
        if last.duration(to: .now) >= ShareLease.duration { shares.hosts = [:] }
        if shares.hosts != ledger.shares { apply(shares.hosts, &ledger) }
        ledger.sharedAt = began
        downloader.confirmShares(asOf: began)
    }

    /// How long a worker that could not share for a while counts others that are silent.
    private static let returnTime = Duration.seconds(20)

    private func apply(_ shares: [String: WorkerShares.Share]?, _ ledger: inout Ledger) {
        ledger.shares = shares
        let others = Set(waits.map(\.name))
        let slots = shares?.filter { !others.contains($0.key) }.mapValues {
            HostShare(slots: $0.slots, parts: $0.parts)
        }
        let all = slots.map { $0[LimitsRecord.everyHost]?.slots ?? 0 }
        downloader.setShares(concurrency: all, hosts: slots)
    }

    private func demands(of hosts: [HostSnapshot], _ now: SteadyTime, _ ledger: inout Ledger) -> [HostDemand] {
        let load = load(of: hosts, now, &ledger)
        let shares = ledger.shares
        let widest = Dictionary(hosts.map { ($0.host, $0.widest) }, uniquingKeysWith: min)
        var demands = load.map { load in
            HostDemand(
                load: load, limit: widest[load.host] ?? limits.ofHosts.perHost,
                share: shares.map { $0[load.host]?.slots ?? 0 }
            )
        }
        let named = Set(demands.map(\.load.host))
        for (host, share) in shares ?? [:] where share.slots > 0 && !named.contains(host) {
            guard host != LimitsRecord.everyHost, !waits.contains(where: { $0.name == host }) else { continue }
            // The downloader has forgotten the host, and could still use its slots.
            demands.append(
                HostDemand(
                    load: HostLoad(host: host, running: 0, waiting: 0, rate: 0), limit: limits.ofHosts.perHost,
                    share: share.slots))
        }
        let running = hosts.reduce(0) { $0 + $1.running }
        let waiting = hosts.reduce(0) { $0 + $1.waiting }
        demands += waits.compactMap(demand(of:))
        guard running + waiting > 0 || (shares?[LimitsRecord.everyHost]?.slots ?? 0) > 0 else { return demands }
        let all = HostLoad(
            host: LimitsRecord.everyHost, running: running, waiting: waiting, rate: 0,
            reason: downloader.counts.isHeldByBodies
                ? "Too many fetched pictures wait for helpers (--transforms); no download starts until one of them has been processed."
                : nil)
        let concurrency = ledger.limits.first { $0.host == LimitsRecord.everyHost }?.concurrency ?? limits.concurrency
        demands.append(
            HostDemand(
                load: all, limit: concurrency, share: shares.map { $0[LimitsRecord.everyHost]?.slots ?? 0 }))
        return demands
    }

    /// The items that wait for something else, such as processes of one kind. Each worker has its own processes and
    /// shares them with no other worker.
    private func demand(of waits: any ItemWaits) -> HostDemand? {
        let (waiting, running) = waits.counts
        guard waiting > 0 else { return nil }
        let load = HostLoad(
            host: waits.name, running: running, waiting: waiting, rate: 0, reason: waits.reason)
        return HostDemand(load: load, limit: 1_000_000, share: nil)
    }

    /// Maximum hosts in a report; if there are more, hosts without requests that only have a rate are left out.
    private static let maxNamed = 1_000

    private func load(of hosts: [HostSnapshot], _ now: SteadyTime, _ ledger: inout Ledger) -> [HostLoad] {
        countRates(of: hosts, &ledger)
        let robots = Set(downloader.robotsWaits(longerThan: .zero).map(\.host))
        let loads = hosts.compactMap { host -> HostLoad? in
            let rate = ledger.rates[host.host] ?? 0
            let isAskedForRules = robots.contains(host.host)
            guard host.running > 0 || host.waiting > 0 || rate > 0 || isAskedForRules else { return nil }
            let wait = host.waiting > 0 ? host.wait : nil
            return HostLoad(
                host: host.host, running: host.running, waiting: host.waiting, rate: rate,
                reason: wait?.reason ?? (isAskedForRules ? "The robots.txt of \(host.host) is fetched first." : nil),
                until: wait?.time.map { now + $0.milliseconds })
        }
        // A host that is not reported gets no slot beside other workers, so all hosts with requests are reported.
        let busy = loads.filter { $0.running > 0 || $0.waiting > 0 || $0.reason != nil }
        let others = loads.filter { $0.running == 0 && $0.waiting == 0 && $0.reason == nil }
        return busy + others.prefix(max(0, Self.maxNamed - busy.count))
    }

    /// Requests a second to each host, for display.
    private func countRates(of hosts: [HostSnapshot], _ ledger: inout Ledger) {
        let now = monotonicMilliseconds()
        guard now - ledger.lastLook >= 1_000 else { return }
        let seconds = Double(now - ledger.lastLook) / 1_000
        ledger.lastLook = now
        ledger.rates = Dictionary(
            hosts.map { ($0.host, Double(max(0, $0.started - (ledger.started[$0.host] ?? 0))) / seconds) },
            uniquingKeysWith: max)
        ledger.started = Dictionary(hosts.map { ($0.host, $0.started) }, uniquingKeysWith: max)
    }

    /// Reports which items wait in this worker. Short waits are not reported.
    func hold(_ ledger: inout Ledger) async throws(JobsError) {
        let sharers = stages.fetcher.fetches.sharers
        var held: [Int64: String] = [:]
        for wait in downloader.waits(longerThan: Self.pause).prefix(Admission.ceiling) {
            for item in sharers[wait.id] ?? [wait.id] { held[item] = wait.host }
        }
        for wait in downloader.robotsWaits(longerThan: Self.pause).prefix(Admission.ceiling) {
            for item in sharers[wait.id] ?? [wait.id] { held[item] = wait.host }
        }
        for waits in waits {
            for wait in waits.waits(longerThan: Self.pause) {
                for item in sharers[wait] ?? [wait] { held[item] = waits.name }
            }
        }
        let removed = Set(ledger.held.keys.filter { held[$0] == nil })
        let added = held.filter { ledger.held[$0.key] != $0.value }.map { HeldItem(item: $0.key, host: $0.value) }
        guard !removed.isEmpty || !added.isEmpty else { return }
        try await store.hosts.saveHeld(added: added, removed: removed, worker: worker)
        ledger.held = held
    }
}

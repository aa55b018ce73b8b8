internal import Core
internal import Download
internal import Jobs
internal import Logging

/// Copies the state of hosts from the downloader to the database, and the limits from the database to the downloader.
struct HostKeeper: Sendable {
    /// The limits with which the worker was started.
    struct Limits: Sendable {
        let concurrency: Int
        let ofHosts: HostLimits
        /// How long a host that has never answered is tried, from its first failure on.
        let patience: Duration

        init(_ downloads: DownloadConfiguration) {
            concurrency = downloads.concurrency
            ofHosts = downloads.hostLimits
            patience = downloads.circuitBreaker.patience
        }
    }

    let store: JobStore
    let stages: Stages
    /// The items that wait for something other than their host.
    let waits: [any ItemWaits]
    let limits: Limits
    let worker: Int64
    let pace: PollingPace
    let logger: Logger

    var downloader: Downloader { stages.fetcher.downloader }
    private var shedHosts: ShedHosts { stages.hosts.shedHosts }

    /// The interval of the rounds. Waits are reported within a second; beside other workers the rounds are shorter, so
    /// that free slots are taken sooner.
    static let pause = Duration.milliseconds(400)
    static let pauseBesideOthers = Duration.milliseconds(200)

    /// The values that were last written and read, so that each change is copied once.
    struct Ledger {
        var seen: [String: SteadyTime] = [:]
        var saved: [String: HostMemory] = [:]
        var started: [String: Int64] = [:]
        var rates: [String: Double] = [:]
        var lastLook = monotonicMilliseconds()
        var hadLoad = false
        /// The items whose progress the database has, and when it was written.
        var told: Set<Int64> = []
        var toldAt = Int64.min
        var limits: [LimitsRecord] = []
        var held: [Int64: String] = [:]
        /// This worker's share of each host; nil while it is the only worker.
        var shares: [String: WorkerShares.Share]?
        /// When the shares were last known to hold.
        var sharedAt = ContinuousClock.now
        /// When this worker could share again after it could not for a while.
        var returnedAt: ContinuousClock.Instant?
    }

    /// Restores the state from before a restart; called before the first request.
    func begin() async throws(JobsError) -> Ledger {
        var ledger = Ledger()
        for memory in try await store.hosts.memories() {
            ledger.saved[memory.host] = memory
            downloader.restore(host: memory.host, window: memory.width, circuitOpenCount: memory.circuitOpenCount)
        }
        try await read(&ledger)
        // Before the first request, since other workers may have all slots.
        ledger.shares = [:]
        downloader.setShares(concurrency: 0, hosts: [:])
        try await share(&ledger)
        return ledger
    }

    /// Runs until its task is cancelled.
    ///
    /// - Returns: the ledger that ``end(_:)`` continues with.
    func run(_ ledger: Ledger) async -> Ledger {
        var ledger = ledger
        while !Task.isCancelled {
            do {
                try await read(&ledger)
                downloader.shedBlocked(longerThan: BlockedHosts.longestWait)
                try await write(&ledger)
                try await hold(&ledger)
                try await tell(&ledger)
                try await callBack()
            } catch {
                // The next round tries again. A lasting error shows in the claims, which end the run.
                logger.warning("The state of hosts could not be stored yet.", metadata: ["error": "\(error)"])
            }
            await pace.pause(ledger.shares == nil ? Self.pause : Self.pauseBesideOthers)
        }
        return ledger
    }

    /// Writes the changes since the last round, for the next worker.
    func end(_ ledger: Ledger) async {
        var ledger = ledger
        do {
            try await write(&ledger)
        } catch {
            logger.warning("The latest state of hosts is lost.", metadata: ["error": "\(error)"])
        }
    }

    /// Reads the blocks that other workers have stored, and the limits that users have changed.
    private func read(_ ledger: inout Ledger) async throws(JobsError) {
        let now = try await store.database.cacheTime()
        let memories = try await store.hosts.memories()
        remind(of: memories, &ledger)
        for memory in memories {
            learn(memory, at: now)
            guard ledger.seen[memory.host] != memory.notBefore else { continue }
            ledger.seen[memory.host] = memory.notBefore
            let left = memory.remaining(at: now)
            let reason = memory.reason.flatMap(HostBlock.init) ?? .retryAfter
            if left > 0 { downloader.block(host: memory.host, for: .milliseconds(left), reason) }
        }
        let records = try await store.hosts.limits()
        guard records != ledger.limits else { return }
        ledger.limits = records
        apply(records)
    }

    /// Writes a host's state again if the host has answered this worker, and the database says that it has never
    /// answered.
    private func remind(of memories: [HostMemory], _ ledger: inout Ledger) {
        let doubted = memories.filter { $0.silence != nil && !$0.hasAnswered }
        guard !doubted.isEmpty else { return }
        let answered = Set(downloader.hosts.filter(\.hasAnswered).map(\.host))
        for memory in doubted where answered.contains(memory.host) { ledger.saved[memory.host] = memory }
    }

    /// The workers of a database share whether a host has ever answered.
    private func learn(_ memory: HostMemory, at now: SteadyTime) {
        if memory.hasAnswered { return downloader.noteAnswered(host: memory.host) }
        guard let silence = memory.silence, (0..<60_000).contains(now - silence.last),
            silence.failure.isUnreachable
        else {
            return
        }
        downloader.adopt(
            host: memory.host,
            silence: HostOutage(
                since: .milliseconds(now - min(silence.since, silence.last)), last: .milliseconds(now - silence.last),
                failure: silence.failure, message: silence.message))
    }

    private func apply(_ records: [LimitsRecord]) {
        let all = records.first { $0.host == LimitsRecord.everyHost }
        stages.settings.live.set(all)
        let common = limits.ofHosts.changed(by: all)
        var special: [String: HostLimits] = [:]
        for record in records where record.host != LimitsRecord.everyHost {
            special[record.host] = common.changed(by: record)
        }
        downloader.setLimits(concurrency: all?.concurrency ?? limits.concurrency, limits: common, special: special)
    }

    private func write(_ ledger: inout Ledger) async throws(JobsError) {
        let now = try await store.database.cacheTime()
        let hosts = downloader.hosts
        let memories = hosts.compactMap { memory(of: $0, now, &ledger) }
        try await store.hosts.save(hosts: memories)
        for memory in memories { ledger.saved[memory.host] = memory }
        try await share(&ledger)
    }

    private func tell(_ ledger: inout Ledger) async throws(JobsError) {
        // A transfer has the id of the item that started it; other items may share it.
        let sharers = stages.fetcher.fetches.sharers
        let downloads = downloader.progress.map {
            TransferProgress(item: $0.id, origin: .network, received: $0.received, expected: $0.expected)
        }
        let progress = (downloads + stages.transfers.all).flatMap { one in
            (sharers[one.item] ?? [one.item]).map {
                TransferProgress(item: $0, origin: one.origin, received: one.received, expected: one.expected)
            }
        }
        // Transfers that begin or end are written at once, the bytes of others at the interval.
        let items = Set(progress.map(\.item))
        let now = monotonicMilliseconds()
        let isDue =
            ledger.toldAt == .min || now - ledger.toldAt >= downloader.configuration.progressInterval.milliseconds
        guard items != ledger.told || (isDue && !items.isEmpty) else { return }
        try await store.reports.save(progress: progress, worker: worker)
        (ledger.told, ledger.toldAt) = (items, now)
    }

    /// Nil if nothing has changed that is worth a write.
    private func memory(of host: HostSnapshot, _ now: SteadyTime, _ ledger: inout Ledger) -> HostMemory? {
        let old = ledger.saved[host.host]
        let width = host.window < Double(host.widest) ? host.window : nil
        var memory = HostMemory(
            host: host.host, notBefore: old?.notBefore ?? SteadyTime(milliseconds: 0), setAt: old?.setAt ?? now,
            reason: old?.reason,
            width: width, circuitOpenCount: host.circuitOpenCount)
        if let left = host.blockedFor, left > .zero, left.milliseconds > (old?.remaining(at: now) ?? 0) + 1_500 {
            memory.notBefore = now + left.milliseconds
            memory.setAt = now
            memory.reason = host.block?.rawValue
            // This worker has set the block itself; reading it back must not set it again.
            ledger.seen[host.host] = memory.notBefore
        }
        note(host, now, in: &memory)
        if old == nil, memory.notBefore.milliseconds == 0, width == nil, host.circuitOpenCount == 0,
            memory.silence == nil
        {
            return nil
        }
        return memory == old ? nil : memory
    }

    /// Records since when a host fails and when it is given up. Small differences from the stored times are ignored.
    private func note(_ host: HostSnapshot, _ now: SteadyTime, in memory: inout HostMemory) {
        // An answer matters only if the host failed before.
        let old = memory.silence
        memory.hasAnswered = host.hasAnswered
        memory.silence = host.silence.map { silence in
            let since = now - silence.since.milliseconds
            let last = now - silence.last.milliseconds
            let failure = silence.failure
            if let old, abs(old.since - since) < 1_000, abs(old.last - last) < 1_000, old.failure == failure {
                return old
            }
            return HostMemory.Silence(
                since: since, last: last,
                givesUpAt: host.hasAnswered ? nil : since + limits.patience.milliseconds, failure: failure,
                message: silence.message)
        }
    }

    /// Queues shed items again when their host can take them. Also queues the items of hosts that were given up, so
    /// that these items end.
    private func callBack() async throws(JobsError) {
        let hosts = shedHosts.hosts
        let inHand = Dictionary(downloader.hosts.map { ($0.host, $0.running + $0.waiting) }, uniquingKeysWith: max)
        for host in hosts where inHand[host] ?? 0 < Admission.atHand / 4 && downloader.blocked(host) == nil {
            if try await store.queue.promote(waitingFor: host, limit: Admission.atHand) == 0 { shedHosts.forget(host) }
        }
        let givenUp = downloader.hosts.map(\.host).filter { downloader.givenUp($0) != nil }
        if !givenUp.isEmpty { _ = try await store.queue.promote(givenUp: givenUp) }
    }
}

extension HostLimits {
    fileprivate func changed(by record: LimitsRecord?) -> HostLimits {
        guard let record else { return self }
        return HostLimits(
            perHost: record.perHost ?? perHost, rate: record.rate ?? rate, burst: record.burst ?? burst)
    }
}

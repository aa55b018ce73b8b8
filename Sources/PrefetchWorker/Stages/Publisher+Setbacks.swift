internal import ContentCache
internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// What the publisher does when files can't be published or recorded at once.
extension Publisher {
    /// Publishes a group for which the cache has no room.
    func publish(_ group: [Entry], withoutSpace reason: String) async {
        // Each half of the group may fit on its own. The recursion ends at a single item that does not fit.
        if group.count > 1 {
            await publish(Array(group[..<(group.count / 2)]))
            return await publish(Array(group[(group.count / 2)...]))
        }
        let blobs = group.flatMap(\.blobs)
        let isHopeless = blobs.reduce(0) { $0 + $1.size } > (budget?.limit ?? .max)
        // Only a source that is too large by itself is too large for every job.
        let failure: FailureClass = blobs.count > 1 ? .transform : .tooLarge
        let record = limits.explained(Failure(failure, reason))
        if !isHopeless, let budget, !budget.isStuck {
            return await end(group, budget.shortageEnding(reason, now: store.database.currentTime))
        }
        await end(group, isHopeless ? .failed(record) : .release)
        if !isHopeless { disk.report(reason) }
    }

    func ending(of entry: Entry, failure: CacheError?) -> ItemEnding {
        guard let failure else { return entry.ending }
        // A full disk fails many files at once; only the first is logged as an error.
        let level: Logger.Level = disk.isInTrouble ? .debug : .error
        disk.report(failure.message)
        logger.log(level: level, "A file can't be published; its item goes back.", metadata: ["error": "\(failure)"])
        return .release
    }

    /// - Returns: whether all files of a result are held now; false if one is missing.
    func hold(_ completion: Completion, _ held: inout HeldFiles) async -> Bool {
        do throws(JobsError) {
            try await store.eviction.announce(completion.renditions.map(\.blob), by: owner)
        } catch {
            disk.report(error.message)
            return false
        }
        let (all, outcome) = await blocking.run { [cache, held] in
            var held = held
            let outcome = Result { () throws(CacheError) in try held.hold(completion, cache) }
            return (held, outcome)
        }
        held = all
        do throws(CacheError) {
            return try outcome.get()
        } catch {
            // Claims pause until the disk works; otherwise the item would come back at once.
            disk.report(error.message)
            logger.warning("A cached file can't be held; its item goes back.", metadata: ["error": "\(error)"])
            return false
        }
    }

    // MARK: - A bucket that does not answer

    /// After this many times that the bucket accepts the test file but refuses a group's files, the group's items go back
    /// to the queue.
    private static let maxRefusals = 3

    /// The entries whose files the bucket may take later, if they stay in hand: to release their items would have other
    /// workers fetch and render them once more.
    func kept(of results: [Published]) -> [Published] {
        let unsent = results.filter { $0.failure?.isUnreachable == true }
        if unsent.isEmpty {
            if results.contains(where: { !$0.entry.blobs.isEmpty && $0.failure == nil }) { outage.isOver() }
            return []
        }
        let time = outage.lasts(monotonicMilliseconds())
        return time < patience.milliseconds && !queue.isClosed && !isHurried.load(ordering: .relaxed) ? unsent : []
    }

    /// Sends files to the bucket each second, until it takes them or their items go back.
    func sendAgain(_ unsent: [Published]) async {
        var rest = unsent
        var (isTold, refusals) = (false, 0)
        while let failure = rest.first?.failure {
            if !isTold { disk.report(failure.message) }
            isTold = true
            // A cancelled task, too, gives the bucket time to recover.
            await Pause.uncancelled(.seconds(1))
            // The worker has written to the bucket since it was told: perhaps only these files are refused.
            if !disk.isInTrouble || disk.isLow { (isTold, refusals) = (false, refusals + 1) }
            rest = await settle(await publishOnce(rest.map(\.entry)), isLast: refusals >= Self.maxRefusals)
        }
    }
}

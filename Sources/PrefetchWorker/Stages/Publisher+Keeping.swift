internal import ContentCache
internal import Core
internal import Jobs
internal import Logging
internal import Synchronization

/// Publishes the files of a group, and keeps results in hand that a bucket does not take yet.
extension Publisher {
    func publishReserved(_ group: [Entry]) async {
        // The collector must not take these files for orphans until the transaction has recorded them.
        let names = group.flatMap { $0.blobs.map(\.hash.hex) }
        budget?.publishing.take(names)
        defer { budget?.publishing.letGo(names) }
        var rest = group
        var (isTold, refusals) = (false, 0)
        while !rest.isEmpty {
            let results = await publishOnce(rest)
            let unsent = results.filter { $0.failure?.isUnreachable == true }
            let keeps = refusals < Self.maxRefusals && mayKeep(unsent, of: results)
            let ended = keeps ? results.filter { $0.failure?.isUnreachable != true } : results
            if !ended.isEmpty {
                await settle(
                    ended.map(\.entry), ended.map { ending(of: $0.entry, failure: $0.failure) },
                    holding: ended.reduce(into: [:]) { files, result in files.merge(result.files) { $1 } })
            }
            guard keeps, let failure = unsent.first?.failure else { return }
            rest = unsent.map(\.entry)
            if !isTold { disk.report(failure.message) }
            isTold = true
            // A cancelled task, too, gives the bucket time to recover.
            await Pause.uncancelled(.seconds(1))
            // The worker has written to the bucket since it was told: perhaps only these files are refused.
            if !disk.isInTrouble || disk.isLow { (isTold, refusals) = (false, refusals + 1) }
        }
    }

    /// How often the bucket may take the worker's test and not a group's files, before their items go back.
    private static let maxRefusals = 3

    /// An entry of a group, after its files were published.
    private struct Published {
        let entry: Entry
        /// Of its first file without success; of a file that can be sent later only if all others succeeded.
        let failure: CacheError?
        let files: [BlobHash: BlobFile]
    }

    private func publishOnce(_ group: [Entry]) async -> [Published] {
        let published = await blocking.run { [cache] in cache.publish(group.flatMap(\.blobs)) }
        await store.cache.countFailedSyncs(among: published.errors, logger)
        var errors = published.errors[...]
        return group.map { entry in
            let own = errors.prefix(entry.blobs.count).compactMap(\.self)
            errors = errors.dropFirst(entry.blobs.count)
            let files = entry.blobs.compactMap { blob in published.files[blob.hash].map { (blob.hash, $0) } }
            return Published(
                entry: entry, failure: own.first { !$0.isUnreachable } ?? own.first,
                files: Dictionary(files) { $1 })
        }
    }

    private func ending(of entry: Entry, failure: CacheError?) -> ItemEnding {
        guard let failure else { return entry.ending }
        // A full disk fails many files at once; only the first is logged as an error.
        let level: Logger.Level = disk.isInTrouble ? .debug : .error
        disk.report(failure.message)
        logger.log(level: level, "A file can't be published; its item goes back.", metadata: ["error": "\(failure)"])
        return .release
    }

    /// Whether results stay in hand that the bucket did not take. To release their items would have other workers fetch
    /// and render them once more.
    private func mayKeep(_ unsent: [Published], of group: [Published]) -> Bool {
        guard !unsent.isEmpty else {
            if group.contains(where: { !$0.entry.blobs.isEmpty && $0.failure == nil }) { outage.isOver() }
            return false
        }
        return outage.lasts(monotonicMilliseconds()) < patience.milliseconds && !queue.isClosed
            && !isHurried.load(ordering: .relaxed)
    }
}

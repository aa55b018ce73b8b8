internal import ContentCache
internal import Jobs
internal import Logging

extension CacheIndex {
    /// Records the files of a group that were given up because the disk did not confirm them.
    func countFailedSyncs(among failures: [CacheError?], _ logger: Logger) async {
        let syncs = failures.count { $0?.isFailedSync == true }
        guard syncs > 0 else { return }
        do {
            try await countFailedSyncs(syncs)
        } catch {
            logger.warning("A failed sync could not be counted.", metadata: ["error": "\(error)"])
        }
    }
}

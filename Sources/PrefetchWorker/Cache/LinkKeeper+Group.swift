internal import ContentCache
internal import Jobs
internal import Logging

/// Links of items that are about to end.
extension LinkKeeper {
    /// Links that were made before their entries.
    struct Made {
        var entries: [CacheEntry] = []
        /// From before the first was made; see `LinkList.round()`.
        var round: Int64?
    }

    /// Makes the links of new files before the commit, so that a crash after the commit leaves none missing.
    ///
    /// - Returns: the links that were made; they are settled again if their items are refused.
    func make(of items: [(item: ClaimedItem, ending: ItemEnding)]) async -> Made {
        await make(
            items.flatMap { item, ending -> [CacheEntry] in
                guard case .done(let completion) = ending, !completion.isCached else { return [] }
                return completion.renditions.map {
                    CacheEntry(key: item.key, variant: $0.name, blob: $0.blob, format: $0.format)
                }
            })
    }

    /// Makes the links of new entries before the commit.
    ///
    /// - Returns: the links that were made.
    func make(_ entries: [CacheEntry]) async -> Made {
        // The transaction meets the same error, and reports it.
        guard let round = try? await store.cache.links.round() else { return Made() }
        await disk.run { [self] in for entry in entries { point(entry, to: entry.blob) } }
        return Made(entries: entries, round: round)
    }

    /// Brings the links of a group in step with the commit.
    ///
    /// - Parameter made: the links that were made before the commit.
    func settle(_ made: Made, _ finished: FinishedGroup?) async {
        let isWhole = finished.map { $0.fencedOut.isEmpty && $0.doubtful.isEmpty } ?? false
        await settle(made, changed: finished?.links ?? [], isWhole: isWhole)
    }

    /// - Parameter isWhole: whether all of `made` were recorded.
    func settle(_ made: Made, changed: [CacheEntry], isWhole: Bool) async {
        let changed = changed + (isWhole ? [] : made.entries)
        guard !changed.isEmpty else { return }
        do {
            try await settle(changed)
        } catch {
            logger.warning(
                "Some links may be missing; 'worker cache verify' repairs them.", metadata: ["error": "\(error)"])
        }
    }
}

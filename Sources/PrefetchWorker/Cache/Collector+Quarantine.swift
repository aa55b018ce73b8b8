internal import ContentCache
internal import Jobs

/// What is in quarantine goes when it has been there for long enough, or when its room is needed.
extension Collector {
    /// All of it, however long it has been there.
    public func clearQuarantine() async throws -> Report {
        var report = Report()
        let all = try await inQuarantine()
        await remove(fromQuarantine: all, &report)
        return report
    }

    /// Removes markers that never got their name, since their process was killed.
    func removeDrafts() async throws {
        let now = store.currentTime
        // A program that makes a cache is done within an hour.
        try await disk.run { [cache] in
            Result { try cache.removeDrafts(before: now - 3_600_000, ofDeadBefore: .max) }
        }.get()
    }

    func removeLeftovers(_ report: inout Report) async throws {
        try await removeDrafts()
        let all = try await inQuarantine()
        // Also where nothing ever goes: when it came is counted from the first look.
        let expired = Set(
            try await store.expired(inQuarantine: all.map(\.name), after: max(0, policy.quarantineAge)))
        guard policy.quarantineAge >= 0 else { return }
        await remove(fromQuarantine: all.filter { expired.contains($0.name) }, &report)
    }

    /// The oldest, as far as there is an excess.
    func evictQuarantine(_ report: inout Report, _ excess: Int64) async throws {
        guard excess > 0 else { return }
        var left = excess
        var chosen: [ContentCache.Quarantined] = []
        for thing in try await inQuarantine() where left > 0 {
            chosen.append(thing)
            left -= thing.bytes
        }
        await remove(fromQuarantine: chosen, &report)
    }

    private func inQuarantine() async throws -> [ContentCache.Quarantined] {
        try await disk.run { [cache] in Result { try cache.inQuarantine() } }.get()
    }

    private func remove(fromQuarantine things: [ContentCache.Quarantined], _ report: inout Report) async {
        guard !things.isEmpty else { return }
        let gone = await disk.run { [cache] in cache.remove(fromQuarantine: things) }
        report.quarantined += gone.files
        report.quarantinedBytes += gone.bytes
        report.stuck += things.count - gone.files
        report.trouble = gone.trouble ?? report.trouble
    }
}

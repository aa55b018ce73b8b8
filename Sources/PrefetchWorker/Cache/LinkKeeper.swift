public import ContentCache
public import Jobs
public import Logging

/// Brings the tree of links in step with the index.
public struct LinkKeeper: Sendable {
    /// What was done.
    public struct Report: Sendable, Encodable {
        public var links = 0
        public var made = 0
        public var removed = 0
    }

    private let store: JobStore
    private let cache: ContentCache
    private let folder: CacheFolder
    private let disk = BlockingQueue("cache.links")

    public init(store: JobStore, cache: ContentCache, logger: Logger) {
        self.store = store
        self.cache = cache
        folder = CacheFolder(cache, logger: logger)
    }

    /// Makes the tree and keeps it from now on, or removes it.
    @discardableResult
    public func turn(on isOn: Bool) async throws -> Report {
        // First, so that nothing that ends meanwhile is missed.
        try await store.setKeepsLinks(isOn)
        return try await repair()
    }

    /// Makes links that are missing or lead elsewhere, and removes what no entry stands for.
    public func repair() async throws -> Report {
        var report = Report()
        guard try await store.keepsLinks() else {
            let all = try await linksOnDisk()
            for link in all { try cache.removeLink(link) }
            report.removed = all.count
            return report
        }
        var wanted: Set<String> = []
        var last: CacheEntry?
        while true {
            let page = try await store.entries(after: last, limit: 200)
            guard let end = page.last else { break }
            last = end
            let missing = page.filter { entry in
                guard let path = Self.path(of: entry) else { return false }
                wanted.insert(path)
                return cache.blob(atLink: path)?.hex != entry.blob
            }
            if !missing.isEmpty { try await store.link(missing, in: folder) }
            report.made += missing.count
        }
        report.links = wanted.count
        for link in try await linksOnDisk() where !wanted.contains(link) {
            // One that was made since is an entry's by now.
            guard try await !isEntry(link) else { continue }
            try cache.removeLink(link)
            report.removed += 1
        }
        return report
    }

    private func isEntry(_ link: String) async throws -> Bool {
        guard let hash = cache.blob(atLink: link) else { return false }
        return try await store.entries(ofBlob: hash.hex, limit: 1_000).contains { Self.path(of: $0) == link }
    }

    private func linksOnDisk() async throws -> [String] {
        try await disk.run { [cache] in
            Result {
                var found: [String] = []
                try cache.forEachLink { found.append($0) }
                return found
            }
        }.get()
    }

    private static func path(of entry: CacheEntry) -> String? {
        ContentCache.linkPath(key: entry.key, variant: entry.variant, format: entry.format)
    }
}

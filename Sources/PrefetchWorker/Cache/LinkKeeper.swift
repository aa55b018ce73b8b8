public import ContentCache
internal import Core
public import Jobs
public import Logging

/// Brings the tree of links in step with the index.
public struct LinkKeeper: Sendable {
    /// The links that were made and removed.
    public struct Report: Sendable, Encodable {
        public var links = 0
        public var made = 0
        public var removed = 0
        /// Folders where links should be or nothing: they were left as they are.
        public var inTheWay: [String] = []
    }

    let store: JobStore
    private let cache: ContentCache
    let logger: Logger
    let disk = BlockingQueue("cache.links")

    /// - Parameter logger: is told of links that can't be made or deleted.
    public init(
        store: JobStore, cache: ContentCache, logger: Logger = Logger(label: "worker") { _ in SwiftLogNoOpLogHandler() },
    ) {
        self.store = store
        self.cache = cache
        self.logger = logger
    }

    /// As a worker does it that is told of it each time it starts: no more than a few looks where all is well.
    func keep(_ isOn: Bool) async throws {
        if try await store.cache.keepsLinks() == isOn {
            if isOn, try await looksWhole() { return }
            if !isOn, !cache.isFolder(atLink: "links") { return }
        }
        try await turn(on: isOn)
    }

    /// Makes the tree and keeps it from now on, or removes it.
    @discardableResult
    public func turn(on isOn: Bool) async throws -> Report {
        // First, so that nothing that ends meanwhile is missed. That the tree is whole is said when it is.
        try await store.cache.setKeepsLinks(isOn)
        return try await repair()
    }

    /// Makes links that are missing or lead elsewhere, and removes what no entry stands for.
    public func repair() async throws -> Report {
        guard try await store.cache.keepsLinks() else { return try await removeAll() }
        var report = Report()
        try await store.cache.setHasMadeLinks(false)
        var wanted: Set<String> = []
        var last: CacheEntry?
        while true {
            let page = try await store.cache.entries(after: last, limit: 200)
            guard let end = page.last else { break }
            last = end
            let missing = page.filter { entry in
                guard let path = Self.path(of: entry) else { return false }
                wanted.insert(path)
                return cache.blob(atLink: path)?.hex != entry.blob
            }
            try await settle(missing)
            for path in missing.compactMap(Self.path) {
                // A blob that is evicted by now has no link.
                if cache.blob(atLink: path) != nil { report.made += 1 }
                if cache.isFolder(atLink: path) { report.inTheWay.append(path) }
            }
        }
        report.links = wanted.count
        for link in try await linksOnDisk() where !wanted.contains(link) {
            // One that was made since is an entry's by now.
            let blob = cache.blob(atLink: link)
            guard try await entry(of: link, blob) == nil else { continue }
            try remove(link, &report)
            if let entry = try await entry(of: link, blob) { try await settle([entry]) }
        }
        try await store.cache.setHasMadeLinks(true)
        return report
    }

    private func removeAll() async throws -> Report {
        var report = Report()
        for link in try await linksOnDisk() { try remove(link, &report) }
        try cache.removeEmptyLinkFolders()
        return report
    }

    private func remove(_ link: String, _ report: inout Report) throws(CacheError) {
        if try cache.removeLink(link) { report.removed += 1 } else { report.inTheWay.append(link) }
    }

    /// Whether the tree was completed, and a few links from all over it are still there: a part may have been deleted by hand.
    private func looksWhole() async throws -> Bool {
        guard try await store.cache.hasMadeLinks() else { return false }
        let some = try await store.cache.entriesFromAllOver()
        return await disk.run { [cache] in
            some.allSatisfy { entry in Self.path(of: entry).map { cache.blob(atLink: $0)?.hex == entry.blob } ?? true }
        }
    }

    /// The entry that a link to this blob stands for; nil for a stray link.
    private func entry(of link: String, _ blob: BlobHash?) async throws -> CacheEntry? {
        guard let blob else { return nil }
        return try await store.cache.entries(ofBlob: blob.hex, limit: 1_000).first { Self.path(of: $0) == link }
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

    // MARK: - Single links

    /// Deletes the links of entries that were removed.
    func unlinkRemoved() async throws {
        while case let links = try await store.cache.removedLinks(limit: 500), !links.isEmpty {
            try await settle(links)
            try await store.cache.forgetRemovedLinks(links)
            // One that was removed once more before it was forgotten.
            try await settle(links)
        }
    }

    /// Makes links lead where their entries say now, or deletes them.
    ///
    /// A program that has changed a link looks at its entry again, and changes the link once more where the entry has changed
    /// meanwhile: the last program to change a link has seen the entry as it is.
    func settle(_ links: [CacheEntry]) async throws {
        var rest = links
        while !rest.isEmpty {
            let blobs = try await store.cache.blobs(ofLinks: rest)
            await disk.run { [self, rest] in for (link, blob) in zip(rest, blobs) { lead(link, to: blob) } }
            let now = try await store.cache.blobs(ofLinks: rest)
            rest = zip(rest, zip(blobs, now)).compactMap { link, blobs in blobs.0 == blobs.1 ? nil : link }
        }
    }

    /// - Parameter blob: nil where there should be no link.
    func lead(_ link: CacheEntry, to blob: String?) {
        do throws(CacheError) {
            // A text that is no hash has no file.
            if let hash = blob.flatMap({ BlobHash($0) }) {
                try cache.link(hash, key: link.key, variant: link.variant, format: link.format)
            } else if blob == nil {
                try cache.unlink(key: link.key, variant: link.variant, format: link.format)
            }
        } catch {
            // It costs a web server a miss; `worker cache verify` puts it right.
            logger.warning("A link is missing or left over.", metadata: ["error": "\(error)"])
        }
    }

    private static func path(of entry: CacheEntry) -> String? {
        ContentCache.linkPath(key: entry.key, variant: entry.variant, format: entry.format)
    }
}

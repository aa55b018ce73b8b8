public import ContentCache
internal import Core
public import Jobs
public import Logging

/// Keeps the tree of links in step with the index.
public struct LinkKeeper: Sendable {
    /// The links that were made and removed.
    public struct Report: Sendable, Encodable {
        public var links = 0
        public var made = 0
        public var removed = 0
        /// Folders under a link's name; they were kept.
        public var inTheWay: [String] = []
    }

    let store: JobStore
    private let cache: ContentCache
    let logger: Logger
    let disk = BlockingQueue("cache.links")

    /// - Parameter logger: logs links that can't be made or deleted.
    public init(
        store: JobStore, cache: ContentCache, logger: Logger = Logger(label: "worker") { _ in SwiftLogNoOpLogHandler() },
    ) {
        self.store = store
        self.cache = cache
        self.logger = logger
    }

    /// Checks a few links at the start; rebuilds the tree if some are missing.
    func keep(_ isOn: Bool) async throws {
        if try await store.cache.links.areKept() == isOn {
            if isOn, try await looksWhole() { return }
            if !isOn, !cache.links.isFolder(atLink: "links") { return }
        }
        try await turn(on: isOn)
    }

    /// Makes the tree and keeps it up to date from now on, or removes it.
    @discardableResult
    public func turn(on isOn: Bool) async throws -> Report {
        // Set first, so that items that end meanwhile make their links. The tree counts as complete only after the
        // repair.
        try await store.cache.links.keep(isOn)
        return try await repair()
    }

    /// Makes links that are missing or point elsewhere, and removes links without an entry.
    public func repair() async throws -> Report {
        guard try await store.cache.links.areKept() else { return try await removeAll() }
        var report = Report()
        try await store.cache.links.setComplete(false)
        var wanted: Set<String> = []
        var last: CacheEntry?
        while true {
            let page = try await store.cache.entries(after: last, limit: 200)
            guard let end = page.last else { break }
            last = end
            let missing = page.filter { entry in
                guard let path = Self.path(of: entry) else { return false }
                wanted.insert(path)
                return cache.links.blob(atLink: path)?.hex != entry.blob
            }
            try await settle(missing)
            for path in missing.compactMap(Self.path) {
                // There is no link if the blob was evicted meanwhile.
                if cache.links.blob(atLink: path) != nil { report.made += 1 }
                if cache.links.isFolder(atLink: path) { report.inTheWay.append(path) }
            }
        }
        report.links = wanted.count
        for link in try await linksOnDisk() where !wanted.contains(link) {
            // A link that was made meanwhile has an entry by now.
            let blob = cache.links.blob(atLink: link)
            guard try await entry(of: link, blob) == nil else { continue }
            try remove(link, &report)
            if let entry = try await entry(of: link, blob) { try await settle([entry]) }
        }
        try await store.cache.links.setComplete(true)
        return report
    }

    private func removeAll() async throws -> Report {
        var report = Report()
        for link in try await linksOnDisk() { try remove(link, &report) }
        try cache.links.removeEmptyLinkFolders()
        return report
    }

    private func remove(_ link: String, _ report: inout Report) throws(CacheError) {
        if try cache.links.removeLink(link) { report.removed += 1 } else { report.inTheWay.append(link) }
    }

    /// Whether the tree was completed and a sample of its links still exists: a user may have deleted a part.
    private func looksWhole() async throws -> Bool {
        guard try await store.cache.links.areComplete() else { return false }
        let some = try await store.cache.sampledEntries()
        return await disk.run { [cache] in
            some.allSatisfy { entry in
                Self.path(of: entry).map { cache.links.blob(atLink: $0)?.hex == entry.blob } ?? true
            }
        }
    }

    /// The entry of a link to this blob; nil for a stray link.
    private func entry(of link: String, _ blob: BlobHash?) async throws -> CacheEntry? {
        guard let blob else { return nil }
        return try await store.cache.entries(ofBlob: blob.hex, limit: 1_000).first { Self.path(of: $0) == link }
    }

    private func linksOnDisk() async throws -> [String] {
        try await disk.run { [cache] in
            Result {
                var found: [String] = []
                try cache.links.forEachLink { found.append($0) }
                return found
            }
        }.get()
    }

    // MARK: - Single links

    /// Deletes the links of removed entries.
    func unlinkRemoved() async throws {
        while case let removed = try await store.cache.links.removed(limit: 500), !removed.isEmpty {
            let blobs = try await settle(removed.map(\.link))
            // Only now: if an entry comes back meanwhile, this program may be killed after it has deleted the link and
            // before it makes the link again. Then the next program finds the removed link here, and settles it.
            try await store.cache.links.forget(removed, settledTo: blobs)
        }
    }

    /// Makes links point to the blobs of their entries, or deletes them.
    ///
    /// After a program has changed a link, it reads the entry again, and changes the link once more if the entry has
    /// changed. So the last program that changes a link has read the current entry.
    ///
    /// - Returns: for each link, the blob to which it points now; nil if it was deleted.
    @discardableResult
    func settle(_ links: [CacheEntry]) async throws -> [String?] {
        var settled = [String?](repeating: nil, count: links.count)
        var rest = Array(links.indices)
        while !rest.isEmpty {
            let changed = rest.map { links[$0] }
            let blobs = try await store.cache.links.blobs(of: changed)
            await disk.run { [self] in for (link, blob) in zip(changed, blobs) { point(link, to: blob) } }
            let now = try await store.cache.links.blobs(of: changed)
            for (place, blob) in zip(rest, blobs) { settled[place] = blob }
            rest = zip(rest, zip(blobs, now)).filter { $0.1.0 != $0.1.1 }.map(\.0)
        }
        return settled
    }

    /// - Parameter blob: nil to delete the link.
    func point(_ link: CacheEntry, to blob: String?) {
        do throws(CacheError) {
            // Text that is no hash has no file.
            if let hash = blob.flatMap({ BlobHash($0) }) {
                try cache.links.link(hash, key: link.key, variant: link.variant, format: link.format)
            } else if blob == nil {
                try cache.links.unlink(key: link.key, variant: link.variant, format: link.format)
            }
        } catch {
            // A missing link costs a web server a cache miss; `worker cache verify` repairs it.
            logger.warning("A link is missing or left over.", metadata: ["error": "\(error)"])
        }
    }

    private static func path(of entry: CacheEntry) -> String? {
        LinkName.path(key: entry.key, variant: entry.variant, format: entry.format)
    }
}

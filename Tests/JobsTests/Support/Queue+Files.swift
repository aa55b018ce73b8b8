import Synchronization
import SystemPackage

@testable import Jobs

/// Files that are only names.
final class NamesOnly: Sendable {
    let names = Mutex<Set<String>>([])
    /// A file that can't be deleted.
    let stuck = Mutex<String?>(nil)

    /// - Returns: why it was not deleted.
    func remove(_ name: String) -> String? {
        if stuck.withLock({ $0 }) == name { return "It is held." }
        names.withLock { _ = $0.remove(name) }
        return nil
    }
}

extension Queue {
    /// Ends `count` items, each with a file of its own that is ten bytes long.
    func fill(_ count: Int, _ files: NamesOnly) async throws -> [ClaimedItem] {
        _ = try await job(count)
        let items = try await claim(count)
        for item in items {
            files.names.withLock { _ = $0.insert(ClaimedItem.hash(of: item.id)) }
            _ = try await store.queue.finish(
                [(item, item.completion(clock: clock))],
                held: HeldBlobs(published: [ClaimedItem.hash(of: item.id)]), reserved: nil)
            clock.advance(1_000)
        }
        return items
    }

    func candidates(_ kind: CacheEviction.Kind? = nil) async throws -> [String] {
        try await store.eviction.candidates(kind, by: .used).page.map(\.hash)
    }

    /// One slice, as a collector does it, of files that no worker has open.
    func removeDying(_ files: NamesOnly) async throws -> CacheEviction.Removal {
        var removal = CacheEviction.Removal()
        let (dying, isLimited) = try await store.eviction.dying()
        let (forgotten, _, isUnfinished) = try await store.eviction.forgetDying(dying)
        removal.isUnfinished = isLimited || isUnfinished
        for hash in forgotten {
            if let trouble = files.remove(hash) {
                removal.stuck.append(hash)
                removal.trouble = trouble
            } else {
                removal.gone.append(hash)
            }
        }
        return try await store.eviction.settle(removal)
    }

    /// However slow the machine is.
    func removeAll(_ files: NamesOnly) async throws -> Int {
        var count = 0
        while true {
            let removal = try await removeDying(files)
            count += removal.gone.count
            if !removal.isUnfinished { return count }
        }
    }

    func markAll() async throws {
        _ = try await store.eviction.markDying(try await store.eviction.candidates(nil, by: .used).page)
    }
}

internal import CDescriptorPassing
internal import ContentCache
// For struct timespec, which belongs to the C module that names it first.
internal import Core
internal import FoundationEssentials
internal import Glibc
internal import Jobs
internal import Synchronization
internal import SystemPackage

/// Finds the other pictures that effects name: a file in the assets' folder, or a cached URL.
///
/// Rows of the database contain the names, so no name may lead out of the folder.
final class Assets: Sendable {
    private struct Known {
        let size: Int64
        let changed: Int64
        let asset: Asset
    }

    private let directory: String?
    private let store: JobStore
    private let cache: any BlobStore
    private let reading: BlockingQueue
    private let redaction: Redaction
    /// Each keeps its file open, so a large folder must not fill the table of open files.
    private let known = Mutex(LRUCache<String, Known>(countLimit: 64))

    init(
        directory: String?, redaction: Redaction, store: JobStore, cache: any BlobStore, reading: BlockingQueue,
    ) {
        self.directory = directory
        self.redaction = redaction
        self.store = store
        self.cache = cache
        self.reading = reading
    }

    /// - Returns: one asset for each name.
    func open(_ names: Set<String>) async throws(Failure) -> [String: Asset] {
        var assets: [String: Asset] = [:]
        for name in names.sorted() {
            let isURL = name.hasPrefix("http://") || name.hasPrefix("https://")
            assets[name] = try await isURL ? cached(name) : named(name)
        }
        return assets
    }

    private func cached(_ url: String) async throws(Failure) -> Asset {
        do {
            guard let source = try await store.cache.source(key: URLText.cacheKey(url)), source.isKept,
                let hash = BlobHash(source.hash)
            else {
                throw Failure(
                    .transform, "The picture '\(redaction.shown(url))' is not in the cache; enqueue it first.")
            }
            let file = await reading.run { [cache] in Result { try cache.openVerified(hash) } }
            return Asset(hash: source.hash, file: try file.get())
        } catch let error as Failure {
            throw error
        } catch let error as JobsError {
            throw Failure(error)
        } catch let error as CacheError where error.code != .damaged {
            throw Failure(error)
        } catch {
            throw Failure(.transform, "The picture '\(redaction.shown(url))' can't be read from the cache: \(error)")
        }
    }

    private func named(_ name: String) async throws(Failure) -> Asset {
        guard let directory else {
            throw Failure(
                .transform,
                "The variant needs the picture '\(name)', and there is no folder of pictures; start the worker with "
                    + "--assets FOLDER.")
        }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }) else {
            throw Failure(.transform, "'\(name)' is no name of a file in the assets' folder.")
        }
        let path = directory + "/" + name
        let result = await reading.run { [self] in Result { try opened(path) } }
        do {
            return try result.get()
        } catch let error as Errno where error.isShortage {
            throw Failure(.diskError, "The picture '\(name)' can't be opened: \(error).")
        } catch {
            throw Failure(.transform, "The picture '\(name)' can't be read from the assets' folder: \(error)")
        }
    }

    /// Reads the bytes again only if the file has changed.
    private func opened(_ path: String) throws -> Asset {
        let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        let file = BlobFile(owning: descriptor)
        var status = stat()
        guard fstat(descriptor.rawValue, &status) == 0 else { throw Errno(rawValue: errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw Failure(.transform, "it is no regular file") }
        let changed = Int64(status.st_mtim.tv_sec) * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
        let before = known.withLock { $0.value(path) }
        if let before, before.size == Int64(status.st_size), before.changed == changed { return before.asset }
        let asset = Asset(hash: try PendingBlob(reading: file).hash.hex, file: file)
        let new = Known(size: Int64(status.st_size), changed: changed, asset: asset)
        known.withLock { $0.insert(new, for: path) }
        return asset
    }
}

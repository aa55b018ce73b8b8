public import ContentCache
internal import Core
public import Jobs

/// Copies the files of a cache in a folder to a bucket, so that its database can use the bucket from then on.
///
/// Files that the bucket has are not sent again: an upload that was interrupted goes on where it was.
public struct CacheUpload: Sendable, Encodable {
    public private(set) var files = 0
    public private(set) var bytes: Int64 = 0
    /// Files that the bucket had.
    public private(set) var present = 0
    /// Files that the index has and the folder does not, or that are damaged. See: worker cache verify
    public private(set) var missing = 0

    private static let group = 64

    /// - Parameters:
    ///   - cache: a cache in a folder. Files that workers add during the upload may be left out.
    ///   - target: a bucket.
    ///   - stop: ends the upload between two groups.
    ///   - progress: called after each group.
    /// - Throws: `cannotCreate` if the bucket belongs to another database; errors of either cache.
    public static func run(
        store: JobStore, from cache: ContentCache, to target: CacheLocation, stop: StopSignal,
        progress: (CacheUpload) -> Void = { _ in },
    ) async throws -> CacheUpload {
        let disk = BlockingQueue("cache.upload")
        let bucket = try target.backing()
        guard let name = try await store.cache.name() else {
            throw WorkerError(
                .cannotCreate, "The database \(store.path) has no cache yet, so there is nothing to upload.")
        }
        if let other = try await disk.run({ Result { try bucket.identity() } }).get(), other != name {
            throw belongsToAnother(target)
        }
        var upload = CacheUpload()
        for shard in 0..<256 where !stop.isRequested {
            let there = try await disk.run { Result { try bucket.blobs(inShard: shard) } }.get()
            let known = Dictionary(there.map { ($0.hash.hex, $0.size) }) { first, _ in first }
            var last = String(shard < 16 ? "0" : "") + String(shard, radix: 16)
            let prefix = last
            while !stop.isRequested {
                let page = try await store.cache.blobs(after: last, limit: Self.group).filter {
                    $0.hash.hasPrefix(prefix)
                }
                guard let end = page.last else { break }
                last = end.hash
                let rest = page.filter { known[$0.hash] != $0.size }
                upload.present += page.count - rest.count
                try await upload.send(rest.compactMap { BlobHash($0.hash) }, cache, bucket, disk)
                progress(upload)
            }
        }
        // Only after all files are sent: the name makes the bucket this database's cache.
        if !stop.isRequested, try await disk.run({ Result { try bucket.identify(as: name) } }).get() != name {
            throw belongsToAnother(target)
        }
        return upload
    }

    private static func belongsToAnother(_ target: CacheLocation) -> WorkerError {
        WorkerError(
            .cannotCreate, "\(target.name) belongs to another database: name another prefix, as in \(target.name)-2.")
    }

    private mutating func send(
        _ hashes: [BlobHash], _ cache: ContentCache, _ bucket: any BackingStore, _ disk: BlockingQueue,
    ) async throws {
        guard !hashes.isEmpty else { return }
        let sent = try await disk.run {
            Result {
                var blobs: [PendingBlob] = []
                for hash in hashes {
                    do throws(CacheError) {
                        blobs.append(try PendingBlob(reading: try cache.openVerified(hash)))
                    } catch {
                        guard error.code == .damaged else { throw error }
                    }
                }
                if let error = bucket.store(blobs).compactMap({ $0 }).first { throw error }
                return blobs.map(\.size)
            }
        }.get()
        files += sent.count
        bytes += sent.reduce(0, +)
        missing += hashes.count - sent.count
    }
}

internal import ContentCache
internal import Core
internal import Dispatch
internal import ImageFiles
internal import Jobs
internal import ObjectStorage
internal import Synchronization
internal import SystemPackage

/// Blobs in an S3 bucket, behind the folder of a cache.
///
///     blobs/sha256/ab/<64 hex>    with the image's media type
///     CACHE_ID                    the name by which the index recognizes the bucket
///     CACHE_OWNER                 where the index is
struct BucketBlobs: BackingStore {
    let name: String
    private let bucket: Bucket
    /// The same bucket with fewer tries: other programs wait while one deletes.
    private let deletions: Bucket
    private let requests = WaitingRequests()

    init(_ bucket: Bucket, deletions: Bucket) {
        self.bucket = bucket
        self.deletions = deletions
        name = "\(bucket.location)"
    }

    var counts: BackingCounts {
        [bucket.counts, deletions.counts].reduce(into: BackingCounts()) { sum, counts in
            sum.requests.merge(counts.requests, uniquingKeysWith: +)
            sum.sent += counts.sent
            sum.received += counts.received
        }
    }

    /// Makes the bucket if it is missing.
    func makeIfMissing() throws(CacheError) {
        try result { [bucket] () async throws(StorageError) in
            do throws(StorageError) {
                _ = try await bucket.bytes(of: Self.identity)
            } catch {
                guard error.code == .noBucket else { throw error }
                try await bucket.make()
            }
        }
    }

    // MARK: - Blobs

    func store(_ blobs: [PendingBlob]) -> [CacheError?] {
        // The bucket sends as many at once as it has connections.
        let stored = requests.wait { [bucket] () async throws(StorageError) in
            await withTaskGroup(of: (Int, StorageError?).self) { group in
                for (index, blob) in blobs.enumerated() {
                    group.addTask { (index, await Self.put(blob, bucket)) }
                }
                return await group.reduce(into: blobs.map { _ in StorageError?.none }) { $0[$1.0] = $1.1 }
            }
        }
        switch stored {
        case .success(let errors): return errors.map { $0.map(CacheError.init) }
        case .failure(let error): return blobs.map { _ in CacheError(error) }
        }
    }

    private static func put(_ blob: PendingBlob, _ bucket: Bucket) async -> StorageError? {
        do throws(StorageError) {
            try await bucket.put(
                key(of: blob.hash), blob.file.descriptor, size: blob.size, hash: blob.hash, type: mediaType(of: blob))
            return nil
        } catch {
            return error
        }
    }

    /// The object's Content-Type, for web servers and browsers that read the bucket.
    private static func mediaType(of blob: PendingBlob) -> String {
        withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
            // Best effort: a file that can't be read fails when it is sent.
            let count = (try? blob.file.descriptor.read(fromAbsoluteOffset: 0, into: buffer)) ?? 0
            return ImageFormat.sniff(UnsafeRawBufferPointer(rebasing: buffer[..<count]))?.mediaType
                ?? "application/octet-stream"
        }
    }

    func fetch(_ hash: BlobHash, into file: BlobFile) throws(CacheError) -> Int64? {
        try result { [bucket] () async throws(StorageError) in
            try await bucket.get(Self.key(of: hash), into: file.descriptor, maxBytes: .max, hash: hash)
        }
    }

    func size(of hash: BlobHash) throws(CacheError) -> Int64? {
        try result { [bucket] () async throws(StorageError) in try await bucket.info(of: Self.key(of: hash))?.size
        }
    }

    func remove(_ hashes: [BlobHash]) throws(CacheError) {
        try result { [deletions] () async throws(StorageError) in
            try await deletions.delete(hashes.map(Self.key))
        }
    }

    func isEmpty() throws(CacheError) -> Bool {
        try result { [bucket] () async throws(StorageError) in
            try await Self.firstPage(of: bucket, Self.prefix) { page in
                page.contains { BlobHash(String($0.key.suffix(64))) != nil }
            } == nil
        }
    }

    func blobs(inShard shard: Int) throws(CacheError) -> [(hash: BlobHash, size: Int64, age: Int64?)] {
        let prefix = Self.prefix + String(shard < 16 ? "0" : "") + String(shard, radix: 16) + "/"
        let objects = try result { [bucket] () async throws(StorageError) in
            var objects: [Bucket.Info] = []
            _ = try await Self.firstPage(of: bucket, prefix) { page in
                objects += page
                return false
            }
            return objects
        }
        let now = DatabaseGate.wallClock().milliseconds
        return objects.compactMap { object in
            BlobHash(String(object.key.dropFirst(prefix.count))).map {
                ($0, object.size, object.modified.map { now - $0.milliseconds })
            }
        }
    }

    /// The first page of a listing that is wanted; nil if there is none.
    private static func firstPage(
        of bucket: Bucket, _ prefix: String, where isWanted: ([Bucket.Info]) -> Bool,
    ) async throws(StorageError) -> [Bucket.Info]? {
        var next: String?
        repeat {
            let page = try await bucket.list(prefix, continuing: next)
            if isWanted(page.objects) { return page.objects }
            next = page.next
        } while next != nil
        return nil
    }

    func url(of hash: BlobHash, seconds: Int) throws(CacheError) -> String {
        try result { [bucket] () async throws(StorageError) in
            try await bucket.presignedURL(of: Self.key(of: hash), seconds: seconds)
        }
    }

    private static let prefix = "blobs/sha256/"

    private static func key(of hash: BlobHash) -> String { "\(prefix)\(hash.hex.prefix(2))/\(hash.hex)" }

    // MARK: - Ownership

    private static let identity = "CACHE_ID"
    private static let owner = "CACHE_OWNER"
    private static let probe = "CACHE_PROBE"

    func identity() throws(CacheError) -> String? {
        guard let text = try text(Self.identity) else { return nil }
        guard !text.isEmpty else {
            throw CacheError(.notACache, "\(name)/\(Self.identity) is empty; it must hold a name.")
        }
        return text
    }

    func identify(as name: String) throws(CacheError) -> String {
        let isNamed = try result { [bucket] () async throws(StorageError) in
            // If several workers start at once, only one of them names it.
            try await bucket.putIfAbsent(Self.identity, Array("\(name)\n".utf8))
        }
        return isNamed ? name : try identity() ?? name
    }

    func changeIdentity(to name: String) throws(CacheError) { try put(Self.identity, name) }

    func owner() throws(CacheError) -> String? { try text(Self.owner) }

    func setOwner(_ text: String) throws(CacheError) { try put(Self.owner, text) }

    func probe() throws(CacheError) { try put(Self.probe, "The worker tests whether it can write here.") }

    private func text(_ key: String) throws(CacheError) -> String? {
        let bytes = try result { [bucket] () async throws(StorageError) in
            try await bucket.bytes(of: key, maxBytes: 8_192)
        }
        return bytes.map { String(decoding: $0, as: UTF8.self).trimmingNewline() }
    }

    private func put(_ key: String, _ text: String) throws(CacheError) {
        try result { [bucket] () async throws(StorageError) in try await bucket.put(key, Array("\(text)\n".utf8)) }
    }

    // MARK: - Waiting

    func abandon() { requests.abandon() }

    private func result<R: Sendable>(
        _ body: @escaping @Sendable () async throws(StorageError) -> R,
    ) throws(CacheError) -> R {
        do throws(StorageError) {
            return try requests.wait(body).get()
        } catch {
            throw CacheError(error)
        }
    }
}

/// The requests for which threads wait, so that all of them can be ended at once.
private final class WaitingRequests: Sendable {
    private struct State {
        var isAbandoned = false
        var tasks: [Int: Task<Void, Never>] = [:]
        var last = 0
    }

    private static let executor = ThreadExecutor("bucket")
    private let state = Mutex(State())

    /// Blocks the calling thread until `body` has ended. `body` runs on a thread of its own: callers that block all of
    /// Swift's threads can't keep it from ending.
    func wait<R: Sendable>(
        _ body: @escaping @Sendable () async throws(StorageError) -> R,
    ) -> Result<R, StorageError> {
        let answer = Answer<R>()
        let number: Int? = state.withLock { state in
            guard !state.isAbandoned else { return nil }
            state.last += 1
            state.tasks[state.last] = Task.detached(executorPreference: Self.executor) {
                do throws(StorageError) {
                    answer.give(.success(try await body()))
                } catch {
                    answer.give(.failure(error))
                }
            }
            return state.last
        }
        guard let number else { return .failure(StorageError(.cancelled, "The worker ends.")) }
        defer { state.withLock { $0.tasks[number] = nil } }
        return answer.wait()
    }

    func abandon() {
        let tasks = state.withLock { state in
            state.isAbandoned = true
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
    }
}

/// A result for which a thread waits.
private final class Answer<R: Sendable>: Sendable {
    private let isGiven = DispatchSemaphore(value: 0)
    private let result = Mutex<Result<R, StorageError>>(
        .failure(StorageError(.cancelled, "The request was cancelled.")))

    func give(_ value: Result<R, StorageError>) {
        result.withLock { $0 = value }
        isGiven.signal()
    }

    func wait() -> Result<R, StorageError> {
        isGiven.wait()
        return result.withLock { $0 }
    }
}

extension CacheError {
    fileprivate init(_ error: StorageError) {
        let code: Code =
            switch error.code {
            case .wrongBytes: .damaged
            case .file: error.errno == .noSpace || error.errno == .diskQuotaExceeded ? .diskFull : .disk
            case .invalid, .denied, .noBucket, .wrongRegion: .cannotCreate
            case .unreachable, .tooLarge, .refused, .cancelled: .disk
            }
        self.init(code, error.message, isUnreachable: error.code == .unreachable)
    }
}

extension String {
    /// Without the newline at its end.
    fileprivate func trimmingNewline() -> String { hasSuffix("\n") ? String(dropLast()) : self }
}

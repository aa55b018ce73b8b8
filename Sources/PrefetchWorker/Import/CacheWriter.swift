public import ContentCache
public import Core
internal import Download
internal import Glibc
internal import ImageFiles
public import Jobs
public import Logging
internal import SystemPackage

/// Stores pictures in the cache by hand, as sources of URLs or as their variants, with or without running workers.
///
/// Every picture is judged like one that was downloaded: its signature, the limits, and in a helper process its pixels.
public struct CacheWriter: Sendable {
    let judge: PictureJudge
    let publisher: PicturePublisher
    /// Pictures in flight at once.
    let width: Int
    /// Bytes of all pictures in flight that have no name yet.
    let memory = MemoryBudget(bytes: 256 << 20)
    private let store: JobStore
    private let cache: ContentCache

    /// Runs helper processes and a publisher while `body` stores pictures.
    ///
    /// - Parameters:
    ///   - configuration: its limits, helpers, extensions and cache policy apply.
    ///   - store: the database that belongs to the cache.
    ///   - isTrial: whether nothing may be changed; then only ``judge(_:)`` may be called.
    /// - Throws: `unavailable` where a sandbox is required and cannot be had; errors of the database and the cache; and
    ///   those of `body`.
    public static func run<R: Sendable>(
        _ configuration: WorkerConfiguration, store: JobStore, cache: ContentCache, isTrial: Bool = false,
        logger: Logger, _ body: (CacheWriter) async throws -> R,
    ) async throws -> R {
        DescriptorLimit.raise()
        var policy = configuration.cachePolicy
        policy.minimumFree = try configuration.minimumFree ?? min(1 << 30, cache.diskBytes() / 20)
        let collector = Collector(store: store, cache: cache, policy: policy, logger: logger)
        let budget = CacheBudget(store: store, collector: collector, isPatient: true)
        let helpers = HelperPool(
            configuration: configuration.helpers, limits: configuration.images, cache: cache, logger: logger)
        if configuration.helpers.requiresSandbox { try await helpers.checkSandbox() }
        let files = SourceFiles(
            cache: cache, memory: MemoryTier(limits: configuration.memoryTier), budget: budget,
            reading: BlockingQueue("picture.reading", width: 4))
        let writer = CacheWriter(
            judge: try PictureJudge(configuration, store: store, files: files, helpers: helpers),
            publisher: PicturePublisher(store, cache, collector, budget, logger), count: configuration.helpers.count,
            store: store, cache: cache)
        // Only a worker can reserve space in a cache with a limit.
        let worker =
            isTrial || policy.maxBytes == nil
            ? nil : try await store.workers.register(host: HostNames.ofThisMachine, pid: getpid(), fetches: false)
        let result: Result<R, any Error>
        do {
            if let worker {
                budget.use(by: worker)
                helpers.connections.mark.hold(try store.workers.helperMark(of: worker))
            }
            result = await withTaskGroup(of: Void.self) { group in
                group.addTask { await helpers.run() }
                group.addTask { await writer.publisher.run() }
                let result: Result<R, any Error>
                do { result = .success(try await body(writer)) } catch { result = .failure(error) }
                writer.publisher.close()
                helpers.close()
                await group.waitForAll()
                return result
            }
            if worker != nil { try await budget.trim() }
        } catch {
            // Best effort: a worker whose program has ended is removed by others.
            if let worker { try? await store.workers.unregister(worker: worker) }
            throw error
        }
        if let worker { try await store.workers.unregister(worker: worker) }
        return try result.get()
    }

    private init(judge: PictureJudge, publisher: PicturePublisher, count: Int, store: JobStore, cache: ContentCache) {
        self.judge = judge
        self.publisher = publisher
        self.store = store
        self.cache = cache
        // A full group of the publisher, and enough for the helpers. Each picture may have two files open.
        width = max(1, min(Publisher.groupItems + 64 * max(1, count), (DescriptorLimit.current - 128) / 4))
    }

    /// Judges a picture as ``put(_:)`` does, and stores nothing.
    ///
    /// - Returns: the picture as it would be stored, or why it is refused.
    /// - Throws: errors of the database and the cache.
    public func judge(_ picture: NewPicture) async throws(WorkerError) -> Result<CachedPicture, Failure> {
        do throws(Failure) {
            let judged = try await judge.judge(picture)
            return .success(cached(judged, picture))
        } catch {
            return .failure(try error.ofPicture)
        }
    }

    /// Stores a picture durably: when it returns, the file is published and in the index. A present picture of the same
    /// URL and variant is replaced.
    ///
    /// - Returns: the picture, or why it is refused, with the class of a download that brings the same bytes.
    /// - Throws: errors of the database and the cache: `tryLater` if the disk or the cache is full.
    public func put(_ picture: NewPicture) async throws(WorkerError) -> Result<CachedPicture, Failure> {
        if let result = try await put(picture, isNew: false) { return result }
        // The cache has lost it since it was looked up.
        return try await put(picture, isNew: true) ?? .failure(Failure(.diskError, "The cache loses the picture."))
    }

    /// - Parameter isNew: whether to store it even if the cache has it.
    /// - Returns: nil if the cache no longer has a picture that it had.
    private func put(
        _ picture: NewPicture, isNew: Bool,
    ) async throws(WorkerError) -> Result<CachedPicture, Failure>? {
        let judged: PictureJudge.Judged
        let outcome: PicturePublisher.Outcome
        do throws(Failure) {
            (judged, outcome) = try await publisher.expecting { () async throws(Failure) in
                let judged = try await judge.judge(picture, isNew: isNew)
                return (judged, await publisher.commit(judged.picture, judged.blob))
            }
        } catch {
            return .failure(try error.ofPicture)
        }
        switch outcome {
        case .recorded: return .success(cached(judged, picture))
        case .gone: return nil
        case .broken(let error): throw error
        }
    }

    private func cached(_ judged: PictureJudge.Judged, _ picture: NewPicture) -> CachedPicture {
        let rendition = judged.picture.rendition
        return CachedPicture(
            url: picture.url, variant: rendition.name, change: judged.change, blob: rendition.blob,
            format: rendition.format, width: rendition.width, height: rendition.height, size: rendition.size,
            path: BlobHash(rendition.blob).map { cache.path(of: $0).string } ?? "")
    }
}

extension Failure {
    /// The failure of a picture, as it is.
    ///
    /// - Throws: a failure of the cache, which ends everything.
    var ofPicture: Failure {
        get throws(WorkerError) {
            switch failureClass {
            case .diskFull, .cancelled: throw WorkerError(.tryLater, message)
            case .diskError: throw WorkerError(.inputOutput, message)
            default: return self
            }
        }
    }
}

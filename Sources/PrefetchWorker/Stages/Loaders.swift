internal import ContentCache
internal import Core
internal import Download
internal import ImageFiles
internal import Jobs
internal import Synchronization
internal import SystemPackage

/// The sources that need no download: the program's loaders, files and `data:` URLs.
final class Loaders: Sendable {
    /// The last one is asked first.
    let registered: [any ImageLoader]
    let local: LocalSources
    let files: SourceFiles
    let inspector: HeaderInspector
    /// The times for a whole picture and between two of its writes, unless the job or `worker limits` has others.
    let timeouts: (total: Duration, silence: Duration)
    /// Limits the number of running loaders.
    private let slots: AsyncSemaphore
    let turns: ProcessTurns
    let transfers: Transfers

    /// - Parameter width: how many of the program's loaders run at once.
    init(
        _ registered: [any ImageLoader], local: LocalSources, files: SourceFiles, inspector: HeaderInspector,
        transfers: Transfers, timeouts: (total: Duration, silence: Duration), width: Int,
    ) {
        self.transfers = transfers
        self.registered = registered
        self.local = local
        self.timeouts = timeouts
        self.files = files
        self.inspector = inspector
        slots = AsyncSemaphore(max(1, width))
        turns = ProcessTurns(.loader, slots: max(1, width))
    }

    /// - Parameter limit: maximum bytes of a source.
    /// - Returns: nil for a URL that is downloaded.
    func load(_ request: DownloadRequest, limit: Int64) async throws(Failure) -> DownloadOutcome<FetchedSource>? {
        if let loader = registered.last(where: { $0.canLoad(request.url) }) {
            return try await turns.waiting(request.id) {
                await slots.enter()
                defer { slots.leave() }
                turns.start(request.id)
                do throws(Failure) {
                    return Result<_, Failure>.success(try await load(request, by: loader, limit: limit))
                } catch {
                    return .failure(error)
                }
            }.get()
        }
        guard LocalSources.isLocal(request.url) else { return nil }
        let id = request.id ?? 0
        defer { transfers.forget(id) }
        let source = try await files.blocking { [files, local, transfers] () throws(Failure) in
            try local.read(request.url, limit: limit) { bytes throws(Failure) in
                transfers.begin(id, request.url, from: .file, expected: bytes)
                return try files.make(for: bytes)
            }
        }
        transfers.end(id, bytes: source.size)
        return .body(source, source.response)
    }

    private func load(
        _ request: DownloadRequest, by loader: any ImageLoader, limit: Int64,
    ) async throws(Failure) -> DownloadOutcome<FetchedSource> {
        let id = request.id ?? 0
        transfers.begin(id, request.url, from: .loader)
        defer { transfers.forget(id) }
        let body = ArrivingBody(
            files: files, inspector: request.isInspected ? inspector : nil, limit: limit,
            tell: { [transfers] in transfers.advance(id, received: $0, expected: $1) })
        let asked = LoaderRequest(
            url: request.url, headers: Dictionary(request.headers.map { ($0.name, $0.value) }) { $1 },
            etag: request.etag, lastModified: request.lastModified)
        let answer: LoaderResponse
        do {
            answer = try await inTime(request.timeouts, body) { try await loader.load(asked, into: body) }
        } catch let failure as Failure {
            throw failure
        } catch is CancellationError {
            throw .stopped("The loader was cancelled.")
        } catch {
            throw Failure(.delegate, "The loader failed: \(error)")
        }
        if Task.isCancelled { throw .stopped() }
        var response = DownloadResponse.local(bytes: body.size)
        (response.contentType, response.etag) = (answer.contentType, answer.etag)
        response.lastModified = answer.lastModified
        if answer.isNotModified {
            guard request.etag != nil || request.lastModified != nil else {
                throw Failure(.delegate, "The loader returned notModified, but no version is cached.")
            }
            response.status = 304
            return .notModified(response)
        }
        guard request.accepts(contentType: answer.contentType) else {
            throw Failure(
                .notAnImage, "The loader's content type is \(answer.contentType ?? "unknown"), which the job refuses.",
                response: response)
        }
        let blob = try await body.finish()
        transfers.end(id, bytes: blob.size)
        return .body(FetchedSource(blob, from: .loader, response: response), response)
    }

    /// Cancels `load` when it takes longer than a download may, or writes nothing for as long as a download may be silent.
    private func inTime<R: Sendable>(
        _ own: DownloadRequest.Timeouts, _ body: ArrivingBody, _ load: @escaping @Sendable () async throws -> R,
    ) async throws -> R {
        let (total, silence) = (own.total ?? timeouts.total, own.silence ?? timeouts.silence)
        return try await withThrowingTaskGroup(of: R?.self) { group in
            group.addTask { try await load() }
            group.addTask {
                try await Task.sleep(for: total)
                throw Failure(.timeout, "The loader took longer than \(total.milliseconds) ms (--total-timeout).")
            }
            group.addTask {
                while case let left = silence - body.silence, left > .zero { try await Task.sleep(for: left) }
                throw Failure(.timeout, "The loader wrote nothing for \(silence.milliseconds) ms (--silence-timeout).")
            }
            defer { group.cancelAll() }
            guard let result = try await group.next() ?? nil else { throw CancellationError() }
            return result
        }
    }
}

/// Receives the bytes that a loader writes.
private final class ArrivingBody: LoaderBody {
    private struct State {
        var file: BlobFile?
        var size: Int64 = 0
        var expected: Int64?
        /// The first bytes, until they show the format.
        var beginning: [UInt8]? = []
        /// When the last write ended; nil while one waits for the disk.
        var wroteAt: ContinuousClock.Instant? = .now
    }

    /// Maximum bytes of the beginning that is kept for inspection.
    private static let inspected = 64 << 10

    private let files: SourceFiles
    private let inspector: HeaderInspector?
    private let limit: Int64
    private let tell: @Sendable (Int64, Int64?) -> Void
    private let state = Mutex(State())

    init(
        files: SourceFiles, inspector: HeaderInspector?, limit: Int64, tell: @escaping @Sendable (Int64, Int64?) -> Void,
    ) {
        self.files = files
        self.inspector = inspector
        self.limit = limit
        self.tell = tell
    }

    var size: Int64 { state.withLock { $0.size } }

    /// For how long the loader has written nothing.
    var silence: Duration { state.withLock { $0.wroteAt.map { .now - $0 } ?? .zero } }

    func expect(_ bytes: Int64) throws(Failure) {
        guard bytes <= limit else { throw tooLarge }
        let received = state.withLock { state in
            state.expected = max(0, bytes)
            return state.size
        }
        tell(received, max(0, bytes))
    }

    func write(_ bytes: [UInt8]) async throws(Failure) {
        if Task.isCancelled { throw .stopped() }
        guard Int64(bytes.count) <= limit, size <= limit - Int64(bytes.count) else { throw tooLarge }
        try inspect(bytes)
        state.withLock { $0.wroteAt = nil }
        defer { state.withLock { $0.wroteAt = .now } }
        try await files.blocking { [self] () throws(Failure) in try append(bytes) }
        let (received, expected) = state.withLock { ($0.size, $0.expected) }
        tell(received, expected)
    }

    /// Blocks on the disk, and while space is reserved.
    private func append(_ bytes: [UInt8]) throws(Failure) {
        var file = state.withLock { $0.file }
        if file == nil { file = try files.make(for: 0) }
        guard let file else { return }
        do {
            try file.cacheReservation?.growWaiting(by: bytes.count)
            try file.descriptor.writeAll(bytes)
        } catch let failure as Failure {
            throw failure
        } catch let error as Errno where error == .fileTooLarge {
            throw Failure(.tooLarge, "The loader's body is larger than the whole cache may be (--cache-max-size).")
        } catch {
            let isFull = (error as? Errno)?.isFullDisk == true
            throw Failure(isFull ? .diskFull : .diskError, "The loader's bytes can't be stored: \(error)")
        }
        state.withLock { state in
            state.file = file
            state.size += Int64(bytes.count)
        }
    }

    private func inspect(_ bytes: [UInt8]) throws(Failure) {
        guard let inspector, let seen = state.withLock({ $0.beginning }) else { return }
        let all = seen + bytes.prefix(Self.inspected - seen.count)
        switch all.withUnsafeBytes(inspector.inspect) {
        case .refuse(let failure): throw failure
        case .accept, .acceptAs: state.withLock { $0.beginning = nil }
        case .undecided: state.withLock { $0.beginning = all.count < Self.inspected ? all : nil }
        }
    }

    func finish() async throws(Failure) -> PendingBlob {
        let (file, size, expected) = state.withLock { ($0.file, $0.size, $0.expected) }
        guard let file, size > 0 else { throw Failure(.badImage, "The loader wrote no bytes.") }
        if let expected, size < expected {
            throw Failure(.connectionLost, "The loader wrote \(size) bytes of \(expected).")
        }
        return try await files.blocking { () throws(Failure) in
            do throws(CacheError) {
                return try PendingBlob(reading: file)
            } catch {
                throw Failure(error)
            }
        }
    }

    private var tooLarge: Failure { Failure(.tooLarge, "The source is larger than \(limit) bytes (--max-body).") }
}

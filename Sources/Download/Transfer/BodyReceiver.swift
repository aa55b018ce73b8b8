import Core
import SystemPackage

/// Receives a body: counts it, passes its beginning to the inspector, writes and hashes it.
final class BodyReceiver {
    private static let inspected = 64 << 10

    private let tools: Transfer.Tools
    /// The id of the request.
    var item: Int64?
    private let limit: Int64
    private let host: String
    private var writer: BodyWriter?
    /// The first bytes, kept until the inspector has decided.
    private var beginning: [UInt8]? = []
    /// The inspector's name for the body's kind.
    private var kind: String?

    private let watch: BodyWatch?
    private let expected: Int64?
    private var lastLook = ContinuousClock.now
    private let progress: BodyProgress?
    /// The bytes that were handed over for a later try.
    private var received: Int64 = 0
    private var lastTold = ContinuousClock.now

    /// - Parameter expected: the announced bytes.
    init(
        tools: Transfer.Tools, limit: Int64, host: String, watch: BodyWatch?, progress: BodyProgress?,
        expected: Int64?, resuming writer: BodyWriter? = nil,
    ) {
        self.writer = writer
        // The beginning of a resumed body was inspected by the earlier try.
        if writer != nil { beginning = nil }
        self.tools = tools
        self.limit = limit
        self.host = host
        self.watch = watch
        self.progress = progress
        self.expected = expected
        progress?.tell(.began, writer?.size ?? 0, expected)
    }

    var isInspected: Bool {
        get { beginning != nil }
        set { if !newValue { beginning = nil } }
    }

    var filter: BodyFilter?

    /// Whether a body over the limit is accepted up to the limit, and the rest dropped.
    var takesBeginning = false
    /// Whether the body has reached its limit and needs no more bytes.
    private(set) var isFull = false

    /// Bytes so far, including those of an earlier try.
    var size: Int64 { writer?.size ?? 0 }

    /// Hands over the bytes so far, for a later try; the receiver is empty after that.
    func giveUp() -> BodyWriter? {
        received = size
        return writer.take()
    }

    /// Tells the observer that no more bytes will come. Called at most once, and not after ``finish(onConsumed:)``.
    func fail() { progress?.tell(.failed, max(size, received), expected) }

    /// Whether the transfer continues after a part of its body.
    enum Reception {
        case goOn
        case stop
        /// No bytes were taken: libcurl delivers the same bytes again when there is space for them.
        case pause
    }

    /// - Parameter onSpace: called when a paused transfer may resume.
    func receive(
        _ all: UnsafeRawBufferPointer, onSpace: @escaping @Sendable () -> Void = {},
    ) throws(Failure) -> Reception {
        isFull = size + Int64(all.count) > limit
        guard !isFull || takesBeginning else {
            throw Failure(.tooLarge, "The body from \(host) is larger than \(limit) bytes.")
        }
        if let filter { try filter.check(received: size.addingSaturated(Int64(all.count))) }
        let bytes = isFull ? UnsafeRawBufferPointer(rebasing: all.prefix(Int(max(0, limit - size)))) : all
        // Checked before anything else reads the bytes, since they are delivered again after a pause.
        guard try onDisk({ try openWriter().reserve(bytes.count, onAnswer: onSpace) }) else { return .pause }
        try inspect(bytes)
        try onDisk { try openWriter().write(bytes) }
        showIfDue()
        return isFull ? .stop : .goOn
    }

    private func showIfDue() {
        if let progress, .now - lastTold >= progress.interval {
            lastTold = .now
            progress.tell(.continued, size, expected)
        }
        guard let watch, let writer, .now - lastLook >= watch.interval else { return }
        lastLook = .now
        // Best effort: without a descriptor this check is skipped.
        guard let file = try? writer.duplicate() else { return }
        watch.look(PartialBody(file: file, received: writer.size, expected: expected))
    }

    /// - Parameter onConsumed: called when the body no longer counts as unconsumed.
    func finish(onConsumed: @escaping @Sendable () -> Void) throws(Failure) -> BodyFile {
        let size = size
        let body = try onDisk { try openWriter().finish(kind: kind, onConsumed: onConsumed) }
        progress?.tell(.ended, size, size)
        return body
    }

    private func openWriter() throws -> BodyWriter {
        if let writer { return writer }
        let made = BodyWriter(try tools.makeFile(), reservation: tools.makeReservation(item))
        writer = made
        return made
    }

    private func inspect(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        guard let seen = beginning else { return }
        // Most bodies are decided by their first chunk, which then need not be copied.
        if seen.isEmpty { return try applyVerdict(on: UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.inspected))) }
        let all = seen + bytes.prefix(Self.inspected - seen.count)
        try all.withUnsafeBytes { prefix in Result { () throws(Failure) in try applyVerdict(on: prefix) } }.get()
    }

    private func applyVerdict(on prefix: UnsafeRawBufferPointer) throws(Failure) {
        switch tools.inspect(prefix) {
        case .accept: beginning = nil
        case .acceptAs(let kind): (beginning, self.kind) = (nil, kind)
        case .refuse(let failure): throw failure
        case .undecided: beginning = prefix.count < Self.inspected ? Array(prefix) : nil
        }
        guard beginning == nil, let filter, let size = tools.measure(prefix) else { return }
        try filter.check(width: size.width, height: size.height)
    }

    /// Disk errors never count as the origin's.
    private func onDisk<R>(_ body: () throws -> R) throws(Failure) -> R {
        do {
            return try body()
        } catch let failure as Failure {
            throw failure
        } catch {
            let errno = error as? Errno ?? .ioError
            if errno == .fileTooLarge {
                throw Failure(.tooLarge, "The body from \(host) is larger than the whole cache may be.")
            }
            let isFull = errno == .noSpace || errno == .diskQuotaExceeded
            throw Failure(isFull ? .diskFull : .diskError, "The body from \(host) could not be stored: \(error).")
        }
    }
}

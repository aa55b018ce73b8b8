import Core
import Download
import Synchronization
import SystemPackage
import TestSupport
import Testing

/// Transfers that pause until space is reserved for the received bytes.
@Suite(.timeLimit(.minutes(15))) struct PauseTests {
    private static let body = (0..<400_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }

    /// Room that is asked for twice each time: the first time it isn't there yet.
    private final class LateRoom: SpaceReservation {
        private let isRefused: Bool
        private let state = Mutex((isAnswered: false, pauses: 0))

        init(isRefused: Bool = false) { self.isRefused = isRefused }

        var pauses: Int { state.withLock { $0.pauses } }

        func grow(by bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool {
            let isAnswered = state.withLock { state in
                defer {
                    if !state.isAnswered { state.pauses += 1 }
                    state.isAnswered.toggle()
                }
                return state.isAnswered
            }
            if isAnswered, isRefused { throw Errno.noSpace }
            if !isAnswered {
                Task {
                    try await Task.sleep(for: .milliseconds(2))
                    onAnswer()
                }
            }
            return isAnswered
        }
    }

    static let replies: [LoopbackReply] = [
        .ok(body), .slowly(body, pieces: 40, pause: 1), .raw("HTTP/1.1 200 OK\r\n\r\n", body: body),
        .chunked(totalBytes: 400_000, startingWith: Array(body.prefix(1_000))),
        .status(200, headers: [("Content-Encoding", "gzip")], body: (try? gzip(of: 400_000)) ?? []),
    ]

    @Test(arguments: replies.indices) func aBodyThatPausesAtEachChunkIsWholeAndInOrder(_ reply: Int) async throws {
        let origin = try LoopbackOrigin { _ in Self.replies[reply] }
        let request = DownloadRequest(url: origin.url("/a"))
        let expected = try await withDownloader { try await $0.download(request).file?.bytes() }
        #expect(expected?.count ?? 0 >= 400_000)
        let room = LateRoom()
        try await withDownloader(makeReservation: { _ in room }) { downloader in
            let file = try #require(await downloader.download(request).file)
            let bytes = try file.bytes()
            #expect(bytes == expected)
        }
        #expect(room.pauses > 5)
    }

    /// One that stalls after what came: nothing but the refusal can end it in time.
    private func endOf(
        _ room: LateRoom, inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict = { _ in .accept },
    ) async throws -> FailureClass? {
        let origin = try LoopbackOrigin { request in
            request.path == "/stall" ? .stall(afterBytes: 60_000) : .slowly(Self.body, pieces: 100, pause: 10)
        }
        let others = Atomic(false)
        return try await withDownloader(
            inspect: { $0.first == Self.body[0] && $0.dropFirst().first == Self.body[1] ? .accept : inspect($0) },
            makeReservation: { _ in
                // Bodies get their rooms when they come, and the stalled one is asked for first.
                others.exchange(true, ordering: .acquiringAndReleasing) ? LateRoom() : room
            }
        ) { downloader in
            let start = ContinuousClock.now
            async let stalled = downloader.download(DownloadRequest(url: origin.url("/stall")))
            #expect(await eventually { room.pauses > 0 })
            async let good = downloader.download(DownloadRequest(url: origin.url("/good")))
            let code = await stalled.code
            let bytes = try await good.file?.bytes()
            #expect(bytes == Self.body)
            #expect(ContinuousClock.now - start < .seconds(120))
            return code
        }
    }

    /// Room that there is once it is given.
    private final class HeldRoom: SpaceReservation {
        private let state = Mutex((isGiven: false, waiting: [@Sendable () -> Void]()))

        var isAskedFor: Bool { state.withLock { !$0.waiting.isEmpty } }

        func give() {
            let waiting = state.withLock { state in
                state.isGiven = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for answer in waiting { answer() }
        }

        func grow(by bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool {
            state.withLock { state in
                if !state.isGiven { state.waiting.append(onAnswer) }
                return state.isGiven
            }
        }
    }

    /// The decoded bytes are kept, and the thread that all transfers share goes on.
    @Test(arguments: [true, false]) func aBodyThatWaitsForSpaceDelaysNoOther(_ isPacked: Bool) async throws {
        let packed = try gzip(of: 400_000)
        let plain = [UInt8](repeating: 0, count: 400_000)
        let origin = try LoopbackOrigin { request in
            guard request.path == "/waiting" else { return .ok(Self.body) }
            return isPacked ? .ok(packed, headers: [("Content-Encoding", "gzip")]) : .ok(plain)
        }
        let room = HeldRoom()
        let isTaken = Atomic(false)
        try await withDownloader(makeReservation: { _ in
            let isLate = isTaken.exchange(true, ordering: .acquiringAndReleasing)
            return isLate ? LateRoom() as any SpaceReservation : room
        }) { downloader in
            async let waiting = downloader.download(DownloadRequest(url: origin.url("/waiting")))
            #expect(await eventually { room.isAskedFor })
            for number in 0..<20 {
                let other = await downloader.download(DownloadRequest(url: origin.url("/\(number)")))
                let bytes = try other.file?.bytes()
                #expect(bytes == Self.body)
            }
            #expect(room.isAskedFor)
            room.give()
            let bytes = try await waiting.file?.bytes()
            #expect(bytes == plain)
        }
    }

    /// Incompressible bytes arrive in as many pieces as were sent, and each piece may be cut anywhere after a pause.
    @Test func aCompressedBodyThatPausesAtEachPieceIsWhole() async throws {
        let packed = try gzip(of: 3_000_000)
        let origin = try LoopbackOrigin { _ in
            .slowly(packed + packed, pieces: 60, pause: 1, headers: [("Content-Encoding", "gzip")])
        }
        let room = LateRoom()
        try await withDownloader(makeReservation: { _ in room }) { downloader in
            let file = try #require(await downloader.download(DownloadRequest(url: origin.url("/a"))).file)
            #expect(file.size == 6_000_000)
            let bytes = try file.bytes()
            #expect(bytes.allSatisfy { $0 == 0 })
        }
        #expect(room.pauses >= 90)
    }

    @Test func aRefusedReservationAfterAPauseEndsOnlyItsTransfer() async throws {
        #expect(try await endOf(LateRoom(isRefused: true)) == .diskFull)
    }

    @Test func aRefusalByTheInspectorAfterAPauseEndsOnlyItsTransfer() async throws {
        let code = try await endOf(LateRoom()) { _ in .refuse(Failure(.notAnImage, "It is no picture.")) }
        #expect(code == .notAnImage)
    }
}

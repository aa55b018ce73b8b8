internal import Core
internal import Hummingbird
internal import NIOCore
internal import Synchronization

/// The live state for all open pages. It is read from the database at most once a second for all of them.
final class StateStreams: Sendable {
    private let data: DashboardData
    private let latest = Mutex<(bytes: [UInt8], at: ContinuousClock.Instant)?>(nil)
    private let reading = AsyncSemaphore(1)
    private let open = Atomic(0)

    /// Pages at once; more are a mistake or an attack.
    private static let maxStreams = 64
    private static let interval: Duration = .seconds(1)

    init(data: DashboardData) { self.data = data }

    /// The state as JSON, as it was within the last second.
    func state() async throws -> [UInt8] {
        // One caller reads the state; callers that waited meanwhile get the same.
        await reading.enter()
        defer { reading.leave() }
        if let known = latest.withLock({ $0 }), .now - known.at < Self.interval * 0.9 { return known.bytes }
        let bytes = try JSONText.bytes(of: try await data.state())
        latest.withLock { $0 = (bytes, .now) }
        return bytes
    }

    /// Server-sent events: the state whenever it has changed, and a comment otherwise, which shows whether the
    /// connection is still there.
    func response() throws(Refusal) -> Response {
        guard open.load(ordering: .relaxed) < Self.maxStreams else {
            throw Refusal(.serviceUnavailable, "Too many pages are open.")
        }
        let body = ResponseBody { [self] writer in
            // Counted only here: this closure never runs for a HEAD request, or for a client that has already left.
            open.wrappingAdd(1, ordering: .relaxed)
            defer { open.wrappingSubtract(1, ordering: .relaxed) }
            var last: [UInt8] = []
            while !Task.isCancelled {
                // An error ends the stream: the page says so, and connects again.
                let state = try await state()
                var text = ByteBuffer()
                if state != last {
                    text.writeString("data: ")
                    text.writeBytes(state)
                    text.writeString("\n\n")
                } else {
                    text.writeString(": \n\n")
                }
                last = state
                try await writer.write(text)
                try await Task.sleep(for: Self.interval)
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
    }
}

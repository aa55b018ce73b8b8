internal import Glibc
internal import HelperProtocol
internal import Synchronization
internal import SystemPackage

/// The image in one slot of the pool, until a helper takes it.
final class HelperSlot: Sendable {
    private let work = Mutex<HelperWork?>(nil)

    func put(_ next: HelperWork) { work.withLock { $0 = next } }

    func take() -> HelperWork? {
        work.withLock { work in
            defer { work = nil }
            return work
        }
    }

    /// Waits for an image if the slot is empty.
    ///
    /// - Returns: false if the queue is closed and empty.
    func fill(from queue: WorkQueue<HelperWork>) async -> Bool {
        if work.withLock({ $0 != nil }) { return true }
        guard let next = await queue.next() else { return false }
        put(next)
        return true
    }
}

/// The descriptor that shows other workers that helpers of this worker live: each helper has it open, also one that
/// outlives the worker. See ``WorkerBook/helperMark(of:)``.
final class HelperMark: Sendable {
    private let state = Mutex<FileDescriptor?>(nil)

    deinit { close() }

    /// Nil for a program that has reserved no space.
    var descriptor: FileDescriptor? { state.withLock { $0 } }

    /// Gives the descriptor to each helper that starts from now on, and closes it at the end.
    func hold(_ descriptor: FileDescriptor) { state.withLock { $0 = descriptor } }

    func close() {
        state.withLock { descriptor in
            // Best effort: close(2) gives the descriptor up even if it fails.
            try? descriptor?.close()
            descriptor = nil
        }
    }
}

/// The sockets of running helpers, so that all can be closed at once. A helper ends when its socket closes, even during
/// an image, and the callers that wait for its answer get a failure.
final class HelperConnections: Sendable {
    private struct State {
        var sockets: [ObjectIdentifier: DescriptorSocket] = [:]
        var areCut = false
        var started: Int64 = 0
    }

    private let state = Mutex(State())
    let mark = HelperMark()

    var areCut: Bool { state.withLock { $0.areCut } }

    /// How many helpers run, and how many have been started.
    var counts: (running: Int, started: Int64) { state.withLock { ($0.sockets.count, $0.started) } }

    func opened(_ socket: DescriptorSocket) {
        let areCut = state.withLock { state in
            state.sockets[ObjectIdentifier(socket)] = socket
            state.started += 1
            return state.areCut
        }
        if areCut { Self.hangUp(socket) }
    }

    func closed(_ socket: DescriptorSocket) {
        state.withLock { $0.sockets[ObjectIdentifier(socket)] = nil }
    }

    /// Closes all sockets, including those that are opened later.
    func cut() {
        let sockets = state.withLock { state in
            state.areCut = true
            return Array(state.sockets.values)
        }
        for socket in sockets { Self.hangUp(socket) }
    }

    private static func hangUp(_ socket: DescriptorSocket) {
        shutdown(socket.descriptor.rawValue, Int32(SHUT_RDWR))
    }
}

internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The image that one place of the pool has in hand, until its helper takes it.
final class HelperPlace: Sendable {
    private let work = Mutex<HelperWork?>(nil)

    func put(_ next: HelperWork) { work.withLock { $0 = next } }

    func take() -> HelperWork? {
        work.withLock { work in
            defer { work = nil }
            return work
        }
    }

    /// Waits for an image, unless there is one.
    ///
    /// - Returns: false once the queue is closed and empty.
    func fill(from queue: WorkQueue<HelperWork>) async -> Bool {
        if work.withLock({ $0 != nil }) { return true }
        guard let next = await queue.next() else { return false }
        put(next)
        return true
    }
}

/// The sockets of helpers that run, so that all can be hung up on at once. A helper ends when its line does, whatever it is
/// working on, and who waits for its answer is told.
final class HelperConnections: Sendable {
    private struct State {
        var sockets: [ObjectIdentifier: DescriptorSocket] = [:]
        var areCut = false
    }

    private let state = Mutex(State())

    var areCut: Bool { state.withLock { $0.areCut } }

    func opened(_ socket: DescriptorSocket) {
        let areCut = state.withLock { state in
            state.sockets[ObjectIdentifier(socket)] = socket
            return state.areCut
        }
        if areCut { Self.hangUp(socket) }
    }

    func closed(_ socket: DescriptorSocket) {
        state.withLock { $0.sockets[ObjectIdentifier(socket)] = nil }
    }

    /// For good: those that are opened later are cut, too.
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

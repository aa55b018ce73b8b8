internal import ContentCache
internal import Core
internal import Dispatch
internal import Download
internal import Synchronization
internal import SystemPackage

/// Reserves space in the cache for one file without a name. The last reference releases it, unless the index counts the
/// file by then.
final class CacheReservation: SpaceReservation, BlobReservation {
    private enum Asked {
        case nothing
        case waiting
        /// The space for all bytes that were requested.
        case granted(Int64)
        case refused(Failure)
    }

    private struct State {
        var bytes: Int64
        /// The space that was requested beyond `bytes`, while the body pauses.
        var asked = Asked.nothing
    }

    private let budget: CacheBudget
    private let item: Int64?
    private let state: Mutex<State>

    /// - Parameter bytes: the space that the budget has already granted.
    /// - Parameter item: the item that is reported as waiting while there is no space.
    init(_ budget: CacheBudget, bytes: Int64 = 0, item: Int64? = nil) {
        self.budget = budget
        self.item = item
        state = Mutex(State(bytes: bytes))
    }

    deinit {
        let left = state.withLock { state in
            if case .granted(let more) = state.asked { return state.bytes + more }
            return state.bytes
        }
        budget.giveBack(left)
    }

    var bytes: Int64 { state.withLock { $0.bytes } }

    /// The index counts the bytes from now on.
    func handOver() -> Int64 {
        state.withLock { state in
            defer { state.bytes = 0 }
            return state.bytes
        }
    }

    /// Gives back the space beyond `count` bytes.
    func shrink(to count: Int64) {
        state.withLock { state in
            guard state.bytes > count else { return }
            budget.giveBack(state.bytes - count)
            state.bytes = count
        }
    }

    func grow(by count: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool {
        let count = Int64(count)
        return try state.withLock { state in
            if budget.isTooLarge(state.bytes + count) { throw Errno.fileTooLarge }
            switch state.asked {
            case .waiting: return false
            case .refused(let failure):
                state.asked = .nothing
                throw failure
            case .granted(let sum):
                // The next chunk may be larger or smaller than the one for which space was requested.
                state.asked = .nothing
                guard sum >= count else { return ask(count, having: sum, &state, onAnswer) }
                budget.giveBack(sum - count)
                state.bytes += count
                return true
            case .nothing: return ask(count, having: 0, &state, onAnswer)
            }
        }
    }

    /// Like `grow`, for a thread that may block.
    func growWaiting(by count: Int) throws {
        while true {
            let answered = DispatchSemaphore(value: 0)
            if try grow(by: count, onAnswer: { answered.signal() }) { return }
            answered.wait()
        }
    }

    /// - Parameter sum: the part of `count` that was granted before.
    private func ask(
        _ count: Int64, having sum: Int64, _ state: inout State, _ onAnswer: @escaping @Sendable () -> Void,
    ) -> Bool {
        if budget.takeSpare(count - sum) {
            state.bytes += count
            return true
        }
        state.asked = .waiting
        // A task of its own, since the download thread does not wait for the answer.
        Task { [self] in
            let refusal = await budget.refusal(of: count - sum, for: item)
            if refusal != nil { budget.giveBack(sum) }
            self.state.withLock { $0.asked = refusal.map(Asked.refused) ?? .granted(count) }
            onAnswer()
        }
        return false
    }
}

extension CacheBudget {
    /// Takes space for a file in flight.
    ///
    /// - Returns: why there is none; nil if there is.
    fileprivate func refusal(of bytes: Int64, for item: Int64?) async -> Failure? {
        do {
            guard case .full(let reason) = try await waitForSpace(bytes, for: item) else { return nil }
            return .cacheIsFull(reason)
        } catch {
            return Failure(.diskError, "Space in the cache can't be reserved: \(error)")
        }
    }
}

extension BlobFile {
    /// The file's reservation.
    var cacheReservation: CacheReservation? { reservation.withLock { $0 as? CacheReservation } }
}

internal import Synchronization

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

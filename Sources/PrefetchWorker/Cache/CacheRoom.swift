internal import ContentCache
internal import Dispatch
internal import Download
internal import Synchronization
internal import SystemPackage

/// Room in the cache for one file that has no name yet. Given back with the last reference, unless the index has the file
/// by then.
final class CacheRoom: BodyRoom {
    private let budget: CacheBudget
    private let size: Mutex<Int64>

    /// - Parameter bytes: what the budget has granted already.
    init(_ budget: CacheBudget, bytes: Int64 = 0) {
        self.budget = budget
        size = Mutex(bytes)
    }

    deinit { budget.giveBack(size.withLock { $0 }) }

    var bytes: Int64 { size.withLock { $0 } }

    /// From now on the index counts them.
    func handOver() -> Int64 {
        size.withLock { bytes in
            defer { bytes = 0 }
            return bytes
        }
    }

    /// Gives back what is more.
    func shrink(to count: Int64) {
        size.withLock { bytes in
            guard bytes > count else { return }
            budget.giveBack(bytes - count)
            bytes = count
        }
    }

    /// Waits, on a thread that may be blocked, while the budget makes room.
    func grow(by count: Int) throws {
        let count = Int64(count)
        if budget.isTooLarge(bytes + count) { throw Errno.fileTooLarge }
        if !budget.takeSpare(count) {
            let answer = Mutex(false)
            let done = DispatchSemaphore(value: 0)
            // On its own: this thread is no task's, and waits for it.
            Task { [budget] in
                // A fault of the database shows in the claims; here it is no room.
                let isGranted = if case .granted? = try? await budget.waitForRoom(count) { true } else { false }
                answer.withLock { $0 = isGranted }
                done.signal()
            }
            done.wait()
            guard answer.withLock({ $0 }) else { throw Errno.noSpace }
        }
        size.withLock { $0 += count }
    }
}

extension BlobFile {
    /// What is set aside for it.
    var room: CacheRoom? { companion.withLock { $0 as? CacheRoom } }
}

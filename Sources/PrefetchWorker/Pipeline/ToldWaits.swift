internal import Synchronization

/// Until when hosts asked to be left alone, as far as that is in the database: of many answers that say the same one is
/// written.
final class ToldWaits: Sendable {
    private let waits = Mutex<[String: Int64]>([:])

    /// - Returns: whether that is news, by more than a second.
    func isNews(_ host: String, until time: Int64) -> Bool {
        waits.withLock { waits in
            if let known = waits[host], known >= time - 1_000 { return false }
            if waits.count >= 10_000 { waits.removeAll() }
            waits[host] = time
            return true
        }
    }

    /// It could not be written down.
    func forget(_ host: String) { waits.withLock { $0[host] = nil } }
}

internal import Synchronization

/// Hosts that have more items waiting than a worker can hold, and what was sent away of them.
final class Crowds: Sendable {
    private let sentAway = Mutex<[String: Int64]>([:])

    var hosts: [String] { sentAway.withLock { Array($0.keys) } }

    /// How long an item that makes room stays away, in milliseconds: longer the more went before it, so that those that
    /// come back don't push the others aside that nobody has looked at yet.
    func delay(of host: String) -> Int64 {
        let count = sentAway.withLock { hosts in
            hosts[host, default: 0] += 1
            return hosts[host] ?? 1
        }
        return min(600_000, 5_000 + 2 * count)
    }

    func forget(_ host: String) { sentAway.withLock { $0[host] = nil } }
}

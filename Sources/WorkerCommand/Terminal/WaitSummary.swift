import Core
import Jobs

/// Describes the items that wait for hosts.
struct WaitSummary {
    private let waits: [HostWaits]
    private let now: WallTime

    init(_ waits: [HostWaits], now: WallTime) {
        self.waits = waits
        self.now = now
    }

    var items: Int { waits.reduce(0) { $0 + $1.items } }

    /// Such as `610 wait for 12 hosts, 0:24 at most`; nil if no item waits. It leaves the time out if it is unknown,
    /// and says `at least` if more items wait than were counted.
    var short: String? {
        guard let first = waits.first else { return nil }
        let hosts = waits.count == 1 ? first.host : "\(waits.count) hosts"
        let least = waits.contains(where: \.isMore) ? "at least " : ""
        return "\(least)\(items) wait for \(hosts)" + (longest.map { ", \($0) at most" } ?? "")
    }

    /// The same, with the hosts for which most items wait, and the reasons.
    var lines: [String] {
        guard let short else { return [] }
        let most = waits.prefix(5).map { wait in
            "  \(wait.host): \(wait.isMore ? "at least " : "")\(wait.items). \(wait.reason)"
                + (time(wait.until).map { " \($0) at most." } ?? "")
        }
        let others = waits.count > 5 ? ["  and \(waits.count - 5) others; see: worker hosts"] : []
        return ["waiting: \(short)"] + most + others
    }

    private var longest: String? {
        let times = waits.map(\.until)
        return times.contains(nil) ? nil : time(times.compactMap { $0 }.max())
    }

    private func time(_ until: WallTime?) -> String? {
        until.map { Output.duration(seconds: Double(max(0, $0 - now)) / 1_000) }
    }
}

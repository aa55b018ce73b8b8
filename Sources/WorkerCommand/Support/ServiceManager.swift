import Core
import Glibc
import Jobs
import PrefetchWorker

/// Tells systemd that the worker is ready, alive and stopping, when systemd started it (`Type=notify`, `WatchdogSec=`).
///
/// The protocol is a datagram to the socket that NOTIFY_SOCKET names; see sd_notify(3).
struct ServiceManager: Sendable {
    private let socket: String
    /// How often systemd wants a sign of life; nil without a watchdog.
    private let watchdog: Duration?

    /// - Returns: nil if no service manager listens.
    init?(environment: [String: String]) {
        guard let socket = environment["NOTIFY_SOCKET"], socket.hasPrefix("/") || socket.hasPrefix("@"),
            (2...107).contains(socket.utf8.count)
        else { return nil }
        self.socket = socket
        let isMeantForUs = environment["WATCHDOG_PID"].map { $0 == "\(getpid())" } ?? true
        let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
        watchdog = isMeantForUs && microseconds > 0 ? .microseconds(microseconds) : nil
    }

    /// Reports until its task is cancelled, and then that the worker stops.
    ///
    /// The sign of life is a read of the database, which waits for no writer: a worker whose threads or disk hang gives none,
    /// and systemd restarts it. A worker that waits for another program's transaction is alive.
    func run(_ statistics: RunStatistics, _ store: JobStore) async {
        let interval = max(.milliseconds(50), min(watchdog.map { $0 / 4 } ?? .seconds(10), .seconds(10)))
        var isReady = false
        while !Task.isCancelled {
            if statistics.hasBegun {
                var lines = isReady ? [] : ["READY=1"]
                if watchdog != nil {
                    // Best effort: an error is a sign of life, too, and the run itself reports it.
                    _ = try? await store.reports.backlog()
                    lines.append("WATCHDOG=1")
                }
                lines.append("STATUS=" + Self.status(statistics.counts))
                send(lines)
                isReady = true
            }
            // Cancellation ends the sleep, and then the loop.
            try? await Task.sleep(for: isReady ? interval : .milliseconds(20))
        }
        stopping()
    }

    /// Says that the worker stops: systemd then waits for TimeoutStopSec= and no longer for the watchdog.
    func stopping() { send(["STOPPING=1"]) }

    private static func status(_ counts: RunStatistics.Counts) -> String {
        "\(counts.done) done, \(counts.cached) cached, \(counts.failed + counts.blacklisted) failed"
    }

    /// Best effort: a service manager that does not listen is no reason to stop.
    private func send(_ lines: [String]) {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { path in
            path.copyBytes(from: socket.utf8)
            // An abstract address begins with a zero byte, which is written as @.
            if socket.hasPrefix("@") { path[0] = 0 }
        }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + socket.utf8.count)
        let message = Array(lines.joined(separator: "\n").utf8)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), pointer, length)
            }
        }
    }
}

internal import Download
public import Jobs
internal import Synchronization

/// How far the bytes of an item's source have come, as ``WorkerConfiguration/onTransfer`` gets it.
public struct TransferReport: Hashable, Sendable {
    public enum Stage: Sendable {
        /// The first report: the response's headers have arrived, or the file is open.
        case began
        case continued
        /// The last report: all bytes have arrived.
        case ended
        /// The last report of a transfer that failed or was stopped.
        case failed
    }

    /// The item whose request it is; other items that wait for the same URL share it.
    public let item: Int64
    public let url: String
    public let origin: SourceOrigin
    public let stage: Stage
    /// Bytes so far, those of an earlier try included.
    public let received: Int64
    /// Bytes in all; nil if that is unknown.
    public let expected: Int64?
}

/// Reports the progress of all transfers to the program, and keeps that of sources that do not come over the network.
/// The downloader keeps that of its own transfers.
final class Transfers: Sendable {
    private struct Transfer {
        let url: String
        let origin: SourceOrigin
        var received: Int64 = 0
        var expected: Int64?
        var told = ContinuousClock.now
        var isEnded = false
    }

    /// The least time between two reports on one transfer, the first and the last excepted.
    private let interval: Duration
    private let tell: (@Sendable (TransferReport) -> Void)?
    private let transfers = Mutex<[Int64: Transfer]>([:])

    init(interval: Duration, tell: (@Sendable (TransferReport) -> Void)?) {
        self.interval = interval
        self.tell = tell
    }

    /// The progress of the transfers that are not downloads.
    var all: [TransferProgress] {
        transfers.withLock { transfers in
            transfers.map {
                TransferProgress(item: $0, origin: $1.origin, received: $1.received, expected: $1.expected)
            }
        }
    }

    /// Observes the body of an item's download; nil if the program wants no reports.
    func watch(_ item: Int64, _ url: String) -> BodyProgress? {
        tell.map { tell in
            BodyProgress(every: interval) { stage, received, expected in
                let stage: TransferReport.Stage =
                    switch stage {
                    case .began: .began
                    case .continued: .continued
                    case .ended: .ended
                    case .failed: .failed
                    }
                tell(
                    TransferReport(
                        item: item, url: url, origin: .network, stage: stage, received: received, expected: expected))
            }
        }
    }

    // MARK: - Sources that are not downloaded

    func begin(_ item: Int64, _ url: String, from origin: SourceOrigin, expected: Int64? = nil) {
        let transfer = Transfer(url: url, origin: origin, expected: expected)
        transfers.withLock { $0[item] = transfer }
        report(item, transfer, .began)
    }

    func advance(_ item: Int64, received: Int64, expected: Int64?) {
        let due = transfers.withLock { transfers -> Transfer? in
            guard var transfer = transfers[item] else { return nil }
            transfer.received = received
            transfer.expected = expected
            let isDue = tell != nil && .now - transfer.told >= interval
            if isDue { transfer.told = .now }
            transfers[item] = transfer
            return isDue ? transfer : nil
        }
        if let due { report(item, due, .continued) }
    }

    /// All bytes are there; the transfer stays in ``all`` while they are used.
    func end(_ item: Int64, bytes: Int64) {
        let transfer = transfers.withLock { transfers -> Transfer? in
            transfers[item]?.received = bytes
            transfers[item]?.expected = bytes
            transfers[item]?.isEnded = true
            return transfers[item]
        }
        if let transfer { report(item, transfer, .ended) }
    }

    /// A transfer that has not ended by then has failed.
    func forget(_ item: Int64) {
        let transfer = transfers.withLock { $0.removeValue(forKey: item) }
        if let transfer, !transfer.isEnded { report(item, transfer, .failed) }
    }

    private func report(_ item: Int64, _ transfer: Transfer, _ stage: TransferReport.Stage) {
        tell?(
            TransferReport(
                item: item, url: transfer.url, origin: transfer.origin, stage: stage, received: transfer.received,
                expected: transfer.expected))
    }
}

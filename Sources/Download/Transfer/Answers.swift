/// What came of transfers that ended, for those who asked.
///
/// Each answer wakes a thread, which costs more than a small transfer does, so those that come at nearly the same time are
/// given together. Nobody waits for more than ``patience``, and nothing that could be transferred waits at all: the places
/// of what ended are free before.
struct Answers {
    private static let patience = Duration.milliseconds(1)
    private static let most = 16

    private var waiting: [(ticket: Ticket, outcome: DownloadOutcome)] = []
    /// When the first of them has waited long enough.
    private(set) var due: ContinuousClock.Instant?

    mutating func add(_ outcome: DownloadOutcome, to ticket: Ticket, now: ContinuousClock.Instant = .now) {
        if waiting.isEmpty { due = now + Self.patience }
        waiting.append((ticket, outcome))
    }

    /// - Parameter isLast: whether nothing runs that others could come from.
    mutating func giveIfDue(isLast: Bool, now: ContinuousClock.Instant = .now) {
        guard let due, isLast || waiting.count >= Self.most || due <= now else { return }
        give()
    }

    mutating func give() {
        due = nil
        for (ticket, outcome) in waiting { ticket.answer(outcome) }
        waiting.removeAll(keepingCapacity: true)
    }
}

/// Hands the outcomes of ended transfers to their callers in batches.
///
/// Each answer wakes a thread, which costs more than a small transfer. So answers at nearly the same time are given
/// together. A caller waits for at most ``patience``, and no transfer waits: the slots of ended transfers are free
/// before.
struct CompletionBatch {
    private static let patience = Duration.milliseconds(1)
    private static let maxCount = 16

    private var waiting: [(queued: QueuedTransfer, outcome: DownloadOutcome<BodyFile>)] = []
    /// When the first answer has waited for ``patience``.
    private(set) var due: ContinuousClock.Instant?

    mutating func add(
        _ outcome: DownloadOutcome<BodyFile>, to queued: QueuedTransfer, now: ContinuousClock.Instant = .now,
    ) {
        if waiting.isEmpty { due = now + Self.patience }
        waiting.append((queued, outcome))
    }

    /// - Parameter isLast: whether no transfer runs that could add more answers.
    mutating func giveIfDue(isLast: Bool, now: ContinuousClock.Instant = .now) {
        guard let due, isLast || waiting.count >= Self.maxCount || due <= now else { return }
        give()
    }

    mutating func give() {
        due = nil
        for (queued, outcome) in waiting { queued.answer(outcome) }
        waiting.removeAll(keepingCapacity: true)
    }
}

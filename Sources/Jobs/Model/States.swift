/// A job's state. Stored as text in `jobs.state`.
public enum JobState: String, Codable, Hashable, Sendable, CaseIterable {
    case queued, running, paused, finished, cancelled, failed

    /// Whether the job may continue without a retry.
    public var isOpen: Bool { self == .queued || self == .running || self == .paused }

    /// The single table of legal moves, from which the schema's `jobs_state_moves` trigger is generated.
    ///
    /// A finished job returns to `queued` when items are added or retried. Cancelled and failed jobs do so only when
    /// they are retried.
    public func canMove(to next: JobState) -> Bool {
        switch (self, next) {
        case (.queued, .running), (.queued, .paused), (.running, .paused), (.running, .queued), (.paused, .queued):
            true
        case (.queued, .finished), (.running, .finished), (.paused, .finished):
            true
        case (.queued, .cancelled), (.running, .cancelled), (.paused, .cancelled):
            true
        case (.queued, .failed), (.running, .failed), (.paused, .failed):
            true
        case (.finished, .queued), (.cancelled, .queued), (.failed, .queued):
            true
        default:
            false
        }
    }
}

/// Which of two items of the same priority is claimed first.
public enum ExecutionOrder: String, Codable, Hashable, Sendable, CaseIterable {
    /// The older first.
    case fifo
    /// The newer first, for example while a user scrolls and needs the pictures on the screen now.
    case lifo
}

/// An item's state. Stored as text in `items.state`.
public enum ItemState: String, Codable, Hashable, Sendable, CaseIterable {
    case queued, active, delayed, done, failed, cancelled

    /// Whether the item has ended; it ends exactly once unless it is retried.
    public var isTerminal: Bool { self == .done || self == .failed || self == .cancelled }

    /// The single table of legal moves, from which the schema's `items_check_update` trigger is generated.
    public func canMove(to next: ItemState) -> Bool {
        switch (self, next) {
        case (.queued, .active), (.queued, .cancelled):
            true
        // An item without a URL.
        case (.queued, .failed):
            true
        case (.active, .queued), (.active, .delayed), (.active, .done), (.active, .failed), (.active, .cancelled):
            true
        case (.delayed, .queued), (.delayed, .cancelled):
            true
        case (.failed, .queued), (.cancelled, .queued):
            true
        default:
            false
        }
    }
}

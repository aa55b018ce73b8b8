/// Where an item stands. Stored as text in `items.state`.
public enum ItemState: String, Codable, Hashable, Sendable, CaseIterable {
    case queued, active, delayed, done, failed, cancelled

    /// Whether the item has ended; it ends exactly once unless somebody retries it.
    public var isTerminal: Bool { self == .done || self == .failed || self == .cancelled }

    /// The one table of legal moves; the schema's `items_state_moves` trigger is generated from it.
    public func canMove(to next: ItemState) -> Bool {
        switch (self, next) {
        case (.queued, .active), (.queued, .cancelled):
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

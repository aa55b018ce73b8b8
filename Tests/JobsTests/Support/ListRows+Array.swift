import Synchronization

@testable import Jobs

extension ListRows {
    /// The rows of an array; `before` is called with the number of each row before it is read.
    init(_ rows: [Row], before: @escaping @Sendable (Int) throws -> Void = { _ in }) {
        let shared = Position()
        self.init(
            rewind: { shared.next.store(0, ordering: .relaxed) },
            next: {
                let index = shared.next.load(ordering: .relaxed)
                try before(index)
                guard index < rows.count else { return nil }
                shared.next.store(index + 1, ordering: .relaxed)
                return rows[index]
            })
    }

    private final class Position: Sendable {
        let next = Atomic(0)
    }
}

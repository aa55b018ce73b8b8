internal import DequeModule
internal import Synchronization

/// A first-in-first-out queue between tasks: many may put, many may wait for the next element.
final class WorkQueue<Element: Sendable>: Sendable {
    private struct State {
        var elements: Deque<Element> = []
        var waiting: [CheckedContinuation<Element?, Never>] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// - Returns: whether the queue accepted it; a closed queue accepts nothing.
    @discardableResult
    func put(_ element: Element) -> Bool {
        let waiter: CheckedContinuation<Element?, Never>?? = state.withLock { state in
            if state.isClosed { return .none }
            if !state.waiting.isEmpty { return .some(state.waiting.removeFirst()) }
            state.elements.append(element)
            return .some(.none)
        }
        guard let waiter else { return false }
        waiter?.resume(returning: element)
        return true
    }

    /// The next element; `nil` once the queue is closed and empty.
    func next() async -> Element? {
        await withCheckedContinuation { continuation in
            let answer: Element?? = state.withLock { state in
                if let element = state.elements.popFirst() { return .some(element) }
                if state.isClosed { return .some(nil) }
                state.waiting.append(continuation)
                return nil
            }
            if let answer { continuation.resume(returning: answer) }
        }
    }

    /// Releases all waiters, and returns the elements that were queued.
    func abandon() -> [Element] {
        let left = state.withLock { state in
            defer { state.elements = [] }
            return Array(state.elements)
        }
        close()
        return left
    }

    /// Releases all waiters; queued elements are still handed out.
    func close() {
        let waiting = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.resume(returning: nil) }
    }
}

extension WorkQueue {
    /// Number of queued elements.
    var count: Int { state.withLock { $0.elements.count } }

    /// Takes queued elements without waiting, at most `limit`, up to the first that isn't `wanted`.
    func takeAvailable(_ limit: Int, while wanted: (Element) -> Bool = { _ in true }) -> [Element] {
        state.withLock { state in
            let most = min(limit, state.elements.count)
            let count = state.elements.prefix(most).firstIndex { !wanted($0) } ?? most
            defer { state.elements.removeFirst(count) }
            return Array(state.elements.prefix(count))
        }
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }
}

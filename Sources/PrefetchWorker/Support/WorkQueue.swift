internal import DequeModule
internal import Synchronization

/// A first-in-first-out queue between tasks: many may put, many may wait for the next.
final class WorkQueue<Element: Sendable>: Sendable {
    private struct State {
        var elements: Deque<Element> = []
        var waiting: [CheckedContinuation<Element?, Never>] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    /// - Returns: whether it was taken in; a closed queue takes nothing.
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

    /// Releases all waiters, and returns the elements that were in.
    func abandon() -> [Element] {
        let left = state.withLock { state in
            defer { state.elements = [] }
            return Array(state.elements)
        }
        close()
        return left
    }

    /// Releases all waiters; elements already in are still handed out.
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
    /// How much is there now.
    var count: Int { state.withLock { $0.elements.count } }

    /// Takes the elements that are there now, at most `limit`, up to the first that isn't `wanted`; doesn't wait.
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

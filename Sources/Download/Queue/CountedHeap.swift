import HeapModule

/// A heap that counts its insertions and removals, so that tests can bound the cost of a queue without a clock.
struct CountedHeap<Element: Comparable> {
    private var heap: Heap<Element>
    private(set) var steps: Int

    init() { (heap, steps) = (Heap(), 0) }

    /// - Parameter steps: the steps of the heap that this one replaces.
    init(_ elements: some Sequence<Element>, after steps: Int) {
        heap = Heap(elements)
        self.steps = steps + heap.count
    }

    var count: Int { heap.count }
    var min: Element? { heap.min }
    /// The elements, in no order.
    var unordered: [Element] { heap.unordered }

    mutating func insert(_ element: Element) {
        steps += 1
        heap.insert(element)
    }

    mutating func popMin() -> Element? {
        steps += 1
        return heap.popMin()
    }

    /// Removes the smallest element. The heap must not be empty.
    mutating func removeMin() {
        steps += 1
        heap.removeMin()
    }
}

extension WaitingQueue {
    /// Operations of all its heaps so far.
    var steps: Int { heads.steps + ages.steps + releases.steps + hosts.values.reduce(0) { $0 + $1.positions.steps } }
}

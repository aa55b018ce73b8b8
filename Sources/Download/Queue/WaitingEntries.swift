/// What the queue of waiting requests consists of.
extension WaitingQueue {
    struct Waiting {
        let queued: QueuedTransfer
        /// Of the queue's hosts, which are looked up by name only when a request comes or ends.
        let host: Host
        var position: Position
        let since: ContinuousClock.Instant
    }

    /// A class, so that changing one number copies neither the other fields nor the heap.
    final class Host {
        let name: String
        let gate: HostGate
        var positions = CountedHeap<Position>()
        /// Entries that are still valid; the heap's other entries are left-overs.
        var live = 0
        var running = 0
        var stalled = 0
        var mayStart: Bool { gate.mayStart(running: running) }

        init(_ name: String, gate: HostGate) {
            self.name = name
            self.gate = gate
        }
    }

    struct Position: Comparable {
        let priority: Int
        let rank: Int64
        /// Increases, so that equal requests start in the order in which they came.
        let id: UInt64
        let version: Int

        static func < (a: Position, b: Position) -> Bool {
            if a.priority != b.priority { return a.priority > b.priority }
            if a.rank != b.rank { return a.rank < b.rank }
            if a.id != b.id { return a.id < b.id }
            return a.version < b.version
        }
    }

    struct Head: Comparable {
        let position: Position
        let host: Host
        /// The host's running transfers when this head was made.
        let running: Int

        static func < (a: Head, b: Head) -> Bool {
            if a.position.priority != b.position.priority { return a.position.priority > b.position.priority }
            if a.running != b.running { return a.running < b.running }
            return a.position < b.position
        }

        static func == (a: Head, b: Head) -> Bool { a.position == b.position && a.running == b.running }
    }

    struct Release: Comparable {
        let until: ContinuousClock.Instant
        let host: String

        static func < (a: Release, b: Release) -> Bool { a.until < b.until }
    }
}

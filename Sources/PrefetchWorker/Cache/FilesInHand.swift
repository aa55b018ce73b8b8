internal import Synchronization

/// Files that this worker has named, or is about to, and that the index doesn't know yet: no other than they is what a
/// crash left.
final class FilesInHand: Sendable {
    private let names = Mutex<[String: Int]>([:])

    func take(_ hashes: [String]) {
        names.withLock { names in for hash in hashes { names[hash, default: 0] += 1 } }
    }

    func letGo(_ hashes: [String]) {
        names.withLock { names in
            for hash in hashes {
                let count = names[hash, default: 0] - 1
                names[hash] = count > 0 ? count : nil
            }
        }
    }

    var all: Set<String> { names.withLock { Set($0.keys) } }
}

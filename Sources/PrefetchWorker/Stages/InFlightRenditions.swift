internal import ContentCache
internal import Jobs
internal import Synchronization

/// Renditions that items in flight have made, shared with other items that have the same source bytes, until the index
/// has them.
///
/// Example: a shop uses one placeholder picture at thousands of URLs. The picture is decoded once, and no item waits
/// until its renditions are published: each item submits the same files, and the first item that is published gives
/// them their names.
final class InFlightRenditions: Sendable {
    struct Found: Sendable {
        /// The source with the facts that were decoded; nil if it was not decoded.
        var source: SourceRecord?
        /// By identity.
        var variants: [String: (record: VariantRecord, blob: PendingBlob)] = [:]
    }

    private struct Entry {
        var users = 1
        var found = Found()
    }

    private let entries = Mutex<[String: Entry]>([:])
    private let locks = KeyedLock()

    func lock(_ hash: String) async { await locks.lock(hash) }
    func unlock(_ hash: String) { locks.unlock(hash) }

    /// Each call needs one `leave`.
    func join(_ hash: String) {
        entries.withLock { entries in
            if entries[hash] == nil { entries[hash] = Entry() } else { entries[hash]?.users += 1 }
        }
    }

    func leave(_ hash: String) {
        // Files are closed outside the lock.
        let last: Entry? = entries.withLock { entries in
            guard var entry = entries[hash] else { return nil }
            entry.users -= 1
            entries[hash] = entry.users > 0 ? entry : nil
            return entry
        }
        withExtendedLifetime(last) {}
    }

    func found(_ hash: String) -> Found { entries.withLock { $0[hash]?.found ?? Found() } }

    func add(_ source: SourceRecord, _ made: [(VariantRecord, PendingBlob)]) {
        entries.withLock { entries in
            guard var entry = entries[source.hash] else { return }
            entry.found.source = source
            for (record, blob) in made { entry.found.variants[record.identity] = (record, blob) }
            entries[source.hash] = entry
        }
    }
}

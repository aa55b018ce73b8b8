internal import ContentCache
internal import Jobs
internal import Synchronization

/// Renditions that items in flight have made of the same bytes, for other items with the same bytes, until the index knows
/// them.
///
/// A shop's picture for a product without one stands at thousands of URLs. It is decoded once, and no item waits until that
/// was written down: each item hands in the same files, and the first that is published names them.
final class InFlightRenditions: Sendable {
    struct Found: Sendable {
        /// With the facts that its pixels told; nil where it wasn't decoded.
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

    /// Every call is paired with one `leave`.
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

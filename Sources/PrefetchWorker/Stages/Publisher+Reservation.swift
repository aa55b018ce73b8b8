internal import ContentCache
internal import Core
internal import Jobs
internal import Logging

/// The disk space that is reserved for the files of a group.
extension Publisher {
    func reservation(of group: [Entry]) -> GroupReservation? {
        budget?.worker.map { worker in
            let held = group.flatMap(\.blobs).filter { $0.file.cacheReservation != nil }
            return GroupReservation(worker: worker, hashes: Set(held.map(\.hash.hex)))
        }
    }

    /// The index counts the files that it recorded. Files that it refused have a name and are counted nowhere, so they
    /// are removed at once.
    func settleReservations(_ group: [Entry], _ endings: [ItemEnding?], _ counted: [String: Int64]) async {
        guard let budget, budget.worker != nil else { return }
        budget.handOver(group.flatMap(\.blobs), counted: counted)
        let refused = zip(group, endings).flatMap { entry, ending in
            ending?.isDone == true ? [] : entry.blobs.map(\.hash.hex)
        }
        guard !refused.isEmpty else { return }
        do {
            _ = try await remover.removeUnknown(Set(refused).sorted())
        } catch {
            logger.warning("Unreferenced files stay until the next collection.", metadata: ["error": "\(error)"])
        }
    }
}

extension ItemEnding {
    var isDone: Bool {
        if case .done = self { return true }
        return false
    }
}

internal import GRDB
internal import Glibc

/// Faults of the disk that pass.
extension JobStore {
    /// Commits a change that changes nothing, to find out whether the disk lets us.
    public func probe() async throws(JobsError) {
        try await write { db in
            try db.execute(sql: "UPDATE cache_totals SET failed_syncs = failed_syncs WHERE id = 1")
        }
    }

    /// Opens the database; a file that is there and can't be read at this moment is tried again a few times.
    public static func opening(
        path: String, missing: Missing = .create, now: @escaping @Sendable () -> Int64 = JobStore.wallClock,
        leaseDuration: Int64 = JobStore.leaseDuration, syncs: Bool = true,
    ) async throws(JobsError) -> JobStore {
        try await retrying(tries: 3) { () throws(JobsError) in
            try JobStore(path: path, missing: missing, now: now, leaseDuration: leaseDuration, syncs: syncs)
        }
    }

    /// Opens the database for a command that reads: it waits for no writer, and what it may only read, or what lies on a disk
    /// mounted read-only, is enough.
    public static func reading(path: String) throws(JobsError) -> JobStore {
        do {
            return try JobStore(path: path, missing: .refuse, waiting: .never)
        } catch  where error.code == .cannotOpen && access(path, R_OK) == 0 {
            // The first fault is the one to tell where this comes to nothing, too.
            do { return try JobStore(readOnly: path) } catch _ { throw error }
        }
    }

    /// Makes a call again, a quarter of a second later, as long as what stopped it may pass.
    public static func retrying<R>(
        tries: Int = 20, _ body: () async throws(JobsError) -> R,
    ) async throws(JobsError) -> R {
        for _ in 1..<tries {
            do throws(JobsError) {
                return try await body()
            } catch  where error.mayPass {
                // Cancellation only cuts the nap short.
                try? await Task.sleep(for: .milliseconds(250))
            }
        }
        return try await body()
    }
}

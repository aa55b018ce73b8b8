internal import SystemPackage

/// Which workers are alive, and which programs are adding lists or warming batches.
///
/// A mark is a lock that says: this worker, list or batch belongs to a living program. It ends with the program.
protocol Liveness: Sendable {
    /// Makes the marks again if they were lost while this program runs.
    func restore() throws(JobsError)

    /// Marks a worker as alive until this process ends or releases it.
    func hold(worker: Int64) throws(JobsError)
    func letGo(worker: Int64)
    /// Whether another program, or another store of this one, has marked the worker. True if nothing is known.
    func isAlive(worker: Int64) -> Bool
    /// Those of the workers that are alive.
    func living(_ workers: [Int64]) -> Set<Int64>

    /// A descriptor for the helpers of a worker, which the caller closes.
    func helperMark(of worker: Int64) throws(JobsError) -> FileDescriptor
    /// Whether a helper of this worker is known to have the descriptor open.
    func areHelpersAlive(of worker: Int64) -> Bool
    var isAnyWorkerAlive: Bool { get }

    /// Marks a batch as being warmed until this object goes or the process ends.
    ///
    /// - Returns: false if another program has marked it.
    func hold(batch key: String) -> Bool

    /// Marks a job as being added, until ``letGo(addition:)`` or the end of this process.
    ///
    /// - Returns: false if another process has marked it, or marks can't be made.
    func hold(addition job: JobID) -> Bool
    func letGo(addition job: JobID)
    /// Whether a live program is adding the job's list.
    func isBeingAdded(_ job: JobID) -> Bool
}

extension Liveness {
    func living(_ workers: [Int64]) -> Set<Int64> { Set(workers.filter { isAlive(worker: $0) }) }
}

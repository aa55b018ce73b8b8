internal import Imaging
public import Jobs

/// Looks at a job as a worker will, before it is in the queue.
public enum WorkerJobs {
    /// - Throws: `usage`, with what is wrong with the variants or options and what would be right.
    public static func check(_ job: NewJob) throws(WorkerError) {
        do {
            _ = try JobPlan(
                JobDefinition(
                    id: 0, variants: job.variants, options: job.options, headers: job.headers, priority: job.priority,
                    order: job.order ?? .fifo))
        } catch {
            throw WorkerError(.usage, error.message)
        }
        guard (-100...100).contains(job.priority) else {
            throw WorkerError(.usage, "The priority must be from -100 to 100, not \(job.priority).")
        }
    }
}

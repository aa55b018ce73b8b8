internal import Core
internal import Jobs
internal import Synchronization

/// The most recently used plans: of jobs, and of items with settings of their own. Most items share one.
final class PlanCache: Sendable {
    private let plans = Mutex(LRUCache<JobDefinition, Result<JobPlan, JobPlanError>>(countLimit: 1_000))

    func plan(for job: JobDefinition) -> Result<JobPlan, JobPlanError> {
        if let plan = plans.withLock({ $0.value(job) }) { return plan }
        let plan: Result<JobPlan, JobPlanError>
        do throws(JobPlanError) {
            plan = .success(try JobPlan(job))
        } catch {
            plan = .failure(error)
        }
        plans.withLock { $0.insert(plan, for: job) }
        return plan
    }
}

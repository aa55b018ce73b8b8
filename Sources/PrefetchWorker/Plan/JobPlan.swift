internal import ContentCache
internal import Core
internal import Download
internal import ImageFiles
public import Jobs
internal import Synchronization
internal import Variants

/// A job's variants and options, parsed once and shared by all its items.
final class JobPlan: Sendable {
    let definition: JobDefinition
    let options: JobOptions
    let settings: JobSettings
    let variants: [VariantSpec]
    /// Timeouts of the job's requests that replace the worker's.
    private let timeouts: DownloadRequest.Timeouts

    /// The timeouts of a request that replace those with which the worker was started.
    func timeouts(_ live: LiveLimits.Values) -> DownloadRequest.Timeouts {
        var timeouts = live.timeouts
        timeouts.silence = self.timeouts.silence ?? timeouts.silence
        timeouts.connect = self.timeouts.connect ?? timeouts.connect
        timeouts.total = self.timeouts.total ?? timeouts.total
        return timeouts
    }

    /// The other pictures that the variants' effects name.
    let assetNames: Set<String>
    /// Whether its requests have headers of its own, such as credentials.
    var hasOwnHeaders: Bool { !definition.headers.isEmpty }

    /// Whether the failure for which a URL is listed may not apply to this job.
    func mayGetAnotherAnswer(than entry: BlacklistEntry) -> Bool {
        if hasOwnHeaders, entry.failure.dependsOnCredentials { return true }
        if tolerance.acceptsDamage, [.badImage, .truncated].contains(entry.failure) { return true }
        return options.contains(.allowInvalidCertificates) && entry.failure == .tlsCertificate
    }

    /// - Throws: the mistake in the job, as a sentence for `jobs.error`.
    init(_ definition: JobDefinition) throws(JobPlanError) {
        self.definition = definition
        if let problem = definition.problem { throw JobPlanError(message: problem) }
        do {
            options = try JobOptions(parsing: definition.options)
            settings = try JobSettings(parsing: definition.options)
        } catch {
            throw JobPlanError(message: error.message)
        }
        var timeouts = DownloadRequest.Timeouts()
        timeouts.silence = settings.timeout.map { .milliseconds($0) }
        timeouts.connect = settings.connectTimeout.map { .milliseconds($0) }
        timeouts.total = settings.totalTimeout.map { .milliseconds($0) }
        self.timeouts = timeouts
        do throws(Failure) {
            try HeaderRules.check(definition.headers.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) })
        } catch {
            throw JobPlanError(message: error.message)
        }
        do {
            let defaults = options.variantDefaults
            let asked = try VariantSpec.parseList(definition.variants)
            variants =
                asked.isEmpty && options.contains(.scaleDownLargeImages)
                ? [.reduced] : try asked.map { try $0.with(defaults) }
            assetNames = variants.reduce(into: []) { $0.formUnion($1.assetNames) }
        } catch {
            throw JobPlanError(message: "\(error)")
        }
    }

    /// The cache key of a URL by the job's rule; nil without a rule.
    func key(of url: String) throws(Failure) -> String? {
        do throws(JobsError) {
            return try settings.cacheKey?.key(of: url)
        } catch {
            throw Failure(.delegate, error.message)
        }
    }

    var keepsOriginal: Bool { !options.contains(.discardOriginal) }

    /// Whether a source has to be decoded before its item is done.
    var decodes: Bool { !options.contains(.avoidDecodeImage) || !variants.isEmpty }

    /// Whether this job must decode a source that another job has stored: it was not decoded, or was accepted with
    /// damage.
    func decodes(_ source: SourceRecord) -> Bool {
        decodes && (source.isUnverified || source.isDamaged && !tolerance.acceptsDamage)
    }

    /// The damage that the job accepts.
    var tolerance: DecodeTolerance {
        DecodeTolerance(
            firstFrameSuffices: options.contains(.decodeFirstFrameOnly),
            acceptsDamage: options.contains(.acceptDamaged))
    }

    /// The worker's rules for retries, with the job's own settings.
    func retries(_ worker: RetryPolicy, _ live: LiveLimits.Values) -> RetryPolicy {
        var retries = worker
        retries.maxTries = settings.maxTries ?? live.maxTries ?? worker.maxTries
        if let delay = settings.retryDelay ?? live.retryDelay {
            retries.base = delay
            retries.cap = max(delay, worker.cap)
        }
        return retries
    }

    /// The requirements on the body of an item's request; nil for none.
    func bodyFilter(of own: OwnColumns?) -> BodyFilter? {
        let filter = settings.filter
        guard own?.size != nil || !filter.isEmpty else { return nil }
        var sizes: [BodyFilter.Size] = []
        if let size = own?.size { sizes.append(.init(size...size, .checksum, wanted: "the item's size is \(size)")) }
        if let bytes = filter.bytes {
            sizes.append(.init(bytes, .filtered, wanted: "the job accepts \(filter.wantedBytes)"))
        }
        var objection: (@Sendable (Int, Int) -> String?)?
        if filter.measuresPixels {
            objection = { width, height in filter.objection(width: width, height: height, isUpright: false) }
        }
        return BodyFilter("\(own?.size ?? -1) \(filter)", sizes: sizes, objection: objection)
    }

    /// Whether the known facts of a source suffice for a job without variants.
    func isSatisfied(with source: SourceRecord) -> Bool {
        source.format != nil && !decodes(source)
    }
}

extension VariantSpec {
    /// The variant of a job without variants that has the option `scale-down-large-images`.
    fileprivate static let reduced: VariantSpec = {
        do throws(VariantSpecError) {
            return try parse("reduced=x,scale-down-large-images")
        } catch {
            // The text is the line above, and no input.
            preconditionFailure("\(error)")
        }
    }()
}

extension JobOptions {
    /// The options of a job that apply to all its variants.
    fileprivate var variantDefaults: Set<VariantOption> {
        let pairs: [(JobOptions, VariantOption)] = [
            (.decodeFirstFrameOnly, .decodeFirstFrameOnly), (.transformAnimatedImage, .transformAnimatedImage),
            (.scaleDownLargeImages, .scaleDownLargeImages),
        ]
        return Set(pairs.filter { contains($0.0) }.map(\.1))
    }
}

struct JobPlanError: Error {
    let message: String
}

/// Checks a job as a worker will, before it is enqueued.
public enum WorkerJobs {
    /// Recipes are not looked up: the queue does that when the job is added.
    ///
    /// - Throws: `usage`, with the mistake in the variants or options and its correction.
    public static func check(_ job: NewJob) throws(WorkerError) {
        do {
            _ = try JobPlan(
                JobDefinition(
                    id: 0, variants: Recipe.split(job.variants).variants, options: job.options, headers: job.headers,
                    priority: job.priority,
                    order: job.order ?? .fifo))
        } catch {
            throw WorkerError(.usage, error.message)
        }
        if let notify = job.notify, notify != "command", Downloader.host(of: notify) == nil || notify.utf8.count > 2_048
        {
            throw WorkerError(
                .usage, "notify must be an http or https URL, or 'command', not '\(notify.prefix(100))'.")
        }
        guard (-100...100).contains(job.priority) else {
            throw WorkerError(.usage, "The priority must be from -100 to 100, not \(job.priority).")
        }
    }
}

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

internal import Core
internal import FoundationEssentials
internal import Hummingbird
internal import Jobs
internal import PrefetchWorker

/// The actions of the pages' buttons. Each returns its result as a sentence.
struct DashboardActions: Sendable {
    let store: JobStore
    let host: any DashboardHost
    let shown: ShownURLs

    /// - Parameters:
    ///   - path: of the request, without `api`.
    ///   - body: JSON.
    func run(_ path: [String], _ body: [UInt8]) async throws -> String {
        switch (path.count, path.first) {
        case (1, "enqueue"): return try await enqueue(try Self.read(EnqueueRequest.self, body))
        case (1, "pause-all"):
            return try await store.control.pauseAll() ? "All jobs are paused." : "They were paused already."
        case (1, "resume-all"):
            return try await store.control.resumeAll() ? "All jobs are resumed." : "Nothing was paused."
        case (1, "limits"): return try await setLimits(try Self.read(LimitsRecord.self, body))
        case (1, "pin"): return try await pin(try Self.read(Pin.self, body))
        case (2, "limits") where path[1] == "reset": return try await resetLimits(try Self.read(HostName.self, body))
        case (2, "blacklist") where path[1] == "remove": return try await unlist(try Self.read(Unlisting.self, body))
        case (3, "jobs"):
            guard let job = JobID(path[1]) else { throw Refusal(.notFound, "'\(path[1])' is no job.") }
            return try await change(job, path[2], body)
        case (3, "schedules"): return try await schedule(path[1], path[2])
        default: throw Refusal(.notFound, "There is no such action.")
        }
    }

    // MARK: - Jobs

    private func change(_ job: JobID, _ action: String, _ body: [UInt8]) async throws -> String {
        switch action {
        case "cancel":
            try await store.control.cancel(job: job)
            return "Job \(job) is cancelled."
        case "pause":
            try await store.control.pause(job: job)
            return "Job \(job) is paused."
        case "resume":
            try await store.control.resume(job: job)
            return "Job \(job) is resumed."
        case "retry": return try await retry(job, try Self.read(Retry.self, body))
        default: throw Refusal(.notFound, "There is no such action.")
        }
    }

    private struct Retry: Decodable {
        var failure: String?
        var host: String?
        /// Whether the URLs of the retried items are taken off the blacklist.
        var retryFailed: Bool?

        enum CodingKeys: String, CodingKey {
            case failure = "class"
            case host
            case retryFailed = "retry_failed"
        }
    }

    private func retry(_ job: JobID, _ wanted: Retry) async throws -> String {
        var selection = JobControl.FailureSelection(host: wanted.host)
        selection.nameOfHost = HostNames.name(ofURL:)
        if let name = wanted.failure {
            selection.failure = try FailureClass(asked: name)
        }
        let (items, listed) = try await store.control.retry(
            job: job, selection, takesOffBlacklist: wanted.retryFailed ?? false)
        let count = items == 1 ? "1 item goes back into the queue." : "\(items) items go back into the queue."
        return listed > 0 && wanted.retryFailed != true
            ? count
                + " \(listed) of their URLs are on the blacklist, so these items end as blacklisted unless the worker's settings have changed."
            : count
    }

    private func enqueue(_ request: EnqueueRequest) async throws -> String {
        let job = try await host.enqueue(request)
        return "Job \(job) was added."
    }

    // MARK: - Hosts and URLs

    private struct HostName: Decodable { let host: String }

    private func setLimits(_ limits: LimitsRecord) async throws -> String {
        var limits = limits
        if limits.host != LimitsRecord.everyHost {
            let name: String
            do { name = try HostNames.parse(limits.host) } catch { throw Refusal(.badRequest, "\(error)") }
            limits.host = name
        }
        try await store.hosts.setLimits(limits)
        return limits.host == LimitsRecord.everyHost
            ? "The limits of the worker are set." : "The limits of \(limits.host) are set."
    }

    private func resetLimits(_ wanted: HostName) async throws -> String {
        try await store.hosts.resetLimits(host: wanted.host)
            ? "The limits of the command line apply again." : "There were no limits of \(wanted.host)."
    }

    private struct Unlisting: Decodable {
        var url: String?
        var handle: String?
        var host: String?
        var failure: String?

        enum CodingKeys: String, CodingKey {
            case url, handle, host
            case failure = "class"
        }
    }

    private func unlist(_ wanted: Unlisting) async throws -> String {
        let selection: Blacklist.Selection
        if wanted.url != nil || wanted.handle != nil {
            selection = .url(try url(wanted.url, wanted.handle))
        } else {
            selection = try Blacklist.Selection(host: wanted.host, failure: wanted.failure)
            if case .all = selection { throw Refusal(.badRequest, "Name a url, a host or a class of failures.") }
        }
        let count = try await store.blacklist.remove(selection)
        return count == 1 ? "1 URL is off the blacklist." : "\(count) URLs are off the blacklist."
    }

    private struct Pin: Decodable {
        let url: String?
        let handle: String?
        let pinned: Bool
    }

    private func pin(_ wanted: Pin) async throws -> String {
        let url = try url(wanted.url, wanted.handle)
        if wanted.pinned {
            try await store.cache.pin([url])
            return "Its files stay in the cache."
        }
        return try await store.cache.unpin([url]) > 0 ? "Its files may be evicted." : "It wasn't pinned."
    }

    /// Buttons send the handle of a shown URL, programs the URL itself.
    private func url(_ url: String?, _ handle: String?) throws(Refusal) -> String {
        guard let handle else {
            if let url { return url }
            throw Refusal(.badRequest, "Name a url.")
        }
        guard let url = shown.url(of: handle) else {
            throw Refusal(.conflict, "This page is out of date; load it again.")
        }
        return url
    }

    // MARK: - Schedules

    private func schedule(_ name: String, _ action: String) async throws -> String {
        switch action {
        case "run": return try await host.runSchedule(named: name)
        case "pause", "resume":
            guard try await store.schedules.setPaused(name, action == "pause") else {
                throw Refusal(.notFound, "There is no schedule '\(name)'.")
            }
            return action == "pause" ? "The schedule is paused." : "The schedule is resumed."
        default: throw Refusal(.notFound, "There is no such action.")
        }
    }

    private static func read<Value: Decodable>(_ type: Value.Type, _ body: [UInt8]) throws(Refusal) -> Value {
        do {
            return try JSONDecoder().decode(type, from: Data(body))
        } catch {
            throw Refusal(.badRequest, "The request is not JSON with the expected members.")
        }
    }
}

extension ItemQuery {
    /// From a request's query; parameters that it lacks keep their defaults.
    init(_ query: Parameters) throws(Refusal) {
        self.init()
        if let name = query["state"] {
            guard Self.states.contains(String(name)) else {
                throw Refusal(
                    .badRequest,
                    "There is no state '\(name)'.\(NearestWord.question(String(name), among: Self.states)) The states are: "
                        + "\(Self.states.joined(separator: ", ")).")
            }
            state = String(name)
        }
        text = query["text"].map(String.init)
        isDescending = query["order"] == "desc"
        if let name = query["sort"] {
            guard let known = Sort(rawValue: String(name)) else {
                let all = Sort.allCases.map(\.rawValue).joined(separator: ", ")
                throw Refusal(.badRequest, "Items can't be sorted by '\(name)'. They can be by: \(all).")
            }
            sort = known
        }
        after = query["after"].flatMap { Int64($0) }
        limit = query["limit"].flatMap { Int($0) } ?? limit
        if let name = query["class"] {
            failure = try FailureClass(asked: String(name))
        }
    }
}

extension Blacklist.Selection {
    /// From a request's query; all entries if it names neither a host nor a class.
    init(_ query: Parameters) throws(Refusal) {
        try self.init(host: query["host"].map(String.init), failure: query["class"].map(String.init))
    }

    fileprivate init(host: String?, failure: String?) throws(Refusal) {
        let byFailure = try failure.map { name throws(Refusal) in try FailureClass(asked: name) }
        self =
            switch (host, byFailure) {
            case (nil, nil): .all
            case (let host?, nil): .host(host)
            case (nil, let failure?): .failure(failure)
            case (let host?, let failure?): .both(.host(host), .failure(failure))
            }
    }
}

extension FailureClass {
    /// - Throws: a refusal with the nearest name.
    fileprivate init(asked name: String) throws(Refusal) {
        guard let known = FailureClass(rawValue: name) else {
            let question = NearestWord.question(name, among: Self.allNamed.map(\.rawValue))
            throw Refusal(.badRequest, "There is no class '\(name)' of failures.\(question)")
        }
        self = known
    }
}

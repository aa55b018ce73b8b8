internal import ContentCache
internal import FoundationEssentials
internal import Jobs
internal import SystemPackage

/// A program that answers for a ``WorkerDelegate``: it is started for each call, gets a line of JSON and perhaps bytes, and
/// answers the same way.
public struct DelegateCommand: Hashable, Sendable {
    public var path: String
    public var hooks: Set<DelegateHook>

    /// - Parameter text: `PATH:HOOK+HOOK`.
    /// - Throws: `usage`.
    public init(parsing text: String) throws(WorkerError) {
        let names = DelegateHook.allCases.map(\.rawValue).sorted().joined(separator: "+")
        guard let colon = text.lastIndex(of: ":") else {
            throw WorkerError(.usage, "delegate-command must be PATH:HOOKS, with some of \(names), not '\(text)'.")
        }
        var hooks: Set<DelegateHook> = []
        for name in text[text.index(after: colon)...].split(separator: "+") {
            guard let hook = DelegateHook(rawValue: String(name)) else {
                throw WorkerError(.usage, "delegate-command: there is no hook '\(name)'. The hooks are \(names).")
            }
            hooks.insert(hook)
        }
        guard !hooks.isEmpty else { throw WorkerError(.usage, "delegate-command names no hooks, of \(names).") }
        self.path = String(text[..<colon])
        self.hooks = hooks
    }
}

/// The program, found when the worker started.
struct CommandDelegate: WorkerDelegate {
    let hooks: Set<DelegateHook>
    private let command: InstalledCommand
    private let limits: CommandLimits
    private let scratch: ScratchFiles
    private let places: Places
    let turns: ProcessTurns

    init(_ command: DelegateCommand, limits: CommandLimits, width: Int, scratch: ScratchFiles) throws(WorkerError) {
        hooks = command.hooks
        self.command = try InstalledCommand(TransformCommand(name: "delegate", path: command.path, version: "1"))
        self.limits = limits
        self.scratch = scratch
        places = Places(width)
        turns = ProcessTurns(.delegate, places: width)
    }

    private struct Question: Encodable {
        let hook: String
        var url: String
        var job: JobID?
        var headers: [String: String]?
        var response: DelegatedResponse?
        var failure: String?

        enum CodingKeys: String, CodingKey {
            case hook, url, job, headers, response
            case failure = "class"
        }
    }

    func allows(_ url: String, job: JobID) async throws -> Bool {
        try await ask(Question(hook: "allow", url: url, job: job)).0.allow ?? true
    }

    func cacheKey(of url: String, job: JobID) async throws -> String? {
        try await ask(Question(hook: "cache-key", url: url, job: job)).0.key
    }

    func request(_ request: DelegatedRequest, job: JobID) async throws -> DelegatedRequest {
        let question = Question(hook: "request", url: request.url, job: job, headers: request.headers)
        let answer = try await ask(question).0
        var changed = DelegatedRequest(url: answer.url ?? request.url, headers: answer.headers ?? request.headers)
        changed.keepsHeaders = answer.headers != nil
        return changed
    }

    func status(of response: DelegatedResponse, job: JobID) async throws -> Int {
        let question = Question(hook: "response", url: response.url, job: job, response: response)
        return try await ask(question).0.status ?? response.status
    }

    func bytes(_ bytes: [UInt8], of url: String, job: JobID) async throws -> [UInt8]? {
        let (answer, rest) = try await ask(Question(hook: "bytes", url: url, job: job), bytes)
        return answer.ok == true ? rest : nil
    }

    func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool? {
        try await ask(Question(hook: "blacklist", url: url, failure: failure.rawValue)).0.blacklist
    }

    private func ask(_ question: Question, _ bytes: [UInt8] = []) async throws -> (DelegateAnswer.Line, [UInt8]) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let line = try Array(encoder.encode(question)) + [UInt8(ascii: "\n")]
        await turns.waiting { await places.enter() }
        defer { places.leave() }
        let file = try scratch.make()
        try file.descriptor.writeAll(line + bytes)
        let output = try await CommandRun(command: command, limits: limits, isDialogue: true)
            .run(try file.openedForReading())
        guard let answer = DelegateAnswer(output) else {
            throw CommandFailure.failed("The delegate's command must answer with a line of JSON, and didn't.")
        }
        if let error = answer.line.error { throw CommandFailure.failed("The delegate says: \(error)") }
        return (answer.line, answer.bytes)
    }
}

internal import ContentCache
internal import Core
internal import FoundationEssentials
internal import Jobs
internal import SystemPackage

/// A program that implements a ``WorkerDelegate``. The worker starts it for each call, and writes a line of JSON and
/// perhaps bytes to it; the program answers in the same form.
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
                let question = NearestWord.question(String(name), among: DelegateHook.allCases.map(\.rawValue))
                throw WorkerError(
                    .usage, "delegate-command: there is no hook '\(name)'.\(question) The hooks are \(names).")
            }
            hooks.insert(hook)
        }
        guard !hooks.isEmpty else {
            throw WorkerError(.usage, "delegate-command names no hooks; the hooks are \(names).")
        }
        self.path = String(text[..<colon])
        self.hooks = hooks
    }
}

/// The delegate program, found when the worker started.
struct CommandDelegate: WorkerDelegate {
    let hooks: Set<DelegateHook>
    private let command: InstalledCommand
    private let limits: CommandLimits
    private let scratch: ScratchFiles
    private let slots: AsyncSemaphore
    let turns: ProcessTurns

    init(_ command: DelegateCommand, limits: CommandLimits, width: Int, scratch: ScratchFiles) throws(WorkerError) {
        hooks = command.hooks
        self.command = try InstalledCommand(TransformCommand(name: "delegate", path: command.path, version: "1"))
        self.limits = limits
        self.scratch = scratch
        slots = AsyncSemaphore(width)
        turns = ProcessTurns(.delegate, slots: width)
    }

    private struct Question: Encodable {
        let hook: String
        var url: String
        var job: JobID?
        var headers: [String: String]?
        var settings: ItemSettings?
        var response: DelegatedResponse?
        var failure: String?

        enum CodingKeys: String, CodingKey {
            case hook, url, job, headers, settings, response
            case failure = "class"
        }
    }

    func settings(_ settings: ItemSettings, of url: String, item: DelegatedItem) async throws -> ItemSettings {
        let question = Question(hook: "options", url: url, job: item.job, settings: settings)
        let answer = try await ask(question, item).0
        return ItemSettings(
            variants: answer.variants ?? settings.variants, options: answer.options ?? settings.options,
            headers: answer.headers ?? settings.headers, priority: answer.priority ?? settings.priority)
    }

    func allows(_ url: String, item: DelegatedItem) async throws -> Bool {
        try await ask(Question(hook: "allow", url: url, job: item.job), item).0.allow ?? true
    }

    func cacheKey(of url: String, item: DelegatedItem) async throws -> String? {
        try await ask(Question(hook: "cache-key", url: url, job: item.job), item).0.key
    }

    func request(_ request: DelegatedRequest, item: DelegatedItem) async throws -> DelegatedRequest {
        let question = Question(hook: "request", url: request.url, job: item.job, headers: request.headers)
        let answer = try await ask(question, item).0
        var changed = DelegatedRequest(url: answer.url ?? request.url, headers: answer.headers ?? request.headers)
        changed.keepsHeaders = answer.headers != nil
        return changed
    }

    func status(of response: DelegatedResponse, item: DelegatedItem) async throws -> Int {
        let question = Question(hook: "response", url: response.url, job: item.job, response: response)
        return try await ask(question, item).0.status ?? response.status
    }

    func bytes(_ bytes: [UInt8], of url: String, item: DelegatedItem) async throws -> [UInt8]? {
        let (answer, rest) = try await ask(Question(hook: "bytes", url: url, job: item.job), item, bytes)
        return answer.ok == true ? rest : nil
    }

    func blacklists(_ url: String, for failure: FailureClass) async throws -> Bool? {
        try await ask(Question(hook: "blacklist", url: url, failure: failure.rawValue)).0.blacklist
    }

    private func ask(
        _ question: Question, _ item: DelegatedItem? = nil, _ bytes: [UInt8] = [],
    ) async throws -> (DelegateAnswer.Line, [UInt8]) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let text = String(decoding: try encoder.encode(question), as: UTF8.self)
        let line = Array(JSONText.adding("meta", item?.meta, to: text).utf8) + [UInt8(ascii: "\n")]
        await turns.waiting { await slots.enter() }
        defer { slots.leave() }
        let file: BlobFile
        do {
            let written = try scratch.make()
            try written.descriptor.writeAll(line + bytes)
            file = try written.openedForReading()
        } catch {
            throw (error as? CacheError).map { Failure($0) }
                ?? Failure(.diskError, "A file for the delegate can't be written: \(error)")
        }
        let output = try await CommandRun(command: command, limits: limits, isDialogue: true).run(file)
        guard let answer = DelegateAnswer(output) else {
            throw Failure(.delegate, "The delegate's command must answer with a line of JSON, and didn't.")
        }
        if let error = answer.line.error { throw Failure(.delegate, "The delegate says: \(error)") }
        return (answer.line, answer.bytes)
    }
}

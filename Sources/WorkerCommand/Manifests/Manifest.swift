import Core
import Jobs
import PrefetchWorker
import Yams

/// A job in a file: YAML, or JSON, which is YAML too.
struct Manifest {
    enum Key: String, CaseIterable {
        case name, urls, file, sources, variants, options, headers, priority, order, schedule, notify
        case dedupeKey = "dedupe-key"
    }

    /// Without the URLs of ``sources``.
    private(set) var job = NewJob(urls: [])
    /// The lines of the job's URLs.
    private(set) var urlLines: [Int?] = []
    /// Lists of URLs: files, addresses and queries.
    private(set) var sources: [ManifestSource] = []
    private(set) var schedule: ManifestSchedule?

    static func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: InputFile.text(path, as: "manifest"), path)
    }

    /// - Parameter path: the file's name, for error messages and for the paths of its lists.
    init(parsing text: String, _ path: String) throws(SettingsError) {
        for (key, field) in try ManifestFields<Key>(Self.node(text, path), path, at: path).all {
            switch key {
            case .name: job.name = try field.filled()
            case .urls: (job.urls, urlLines) = (try field.list(), field.lines)
            case .file: sources += [ManifestSource(file: try field.text(), beside: path)]
            case .sources: sources += try ManifestSource.all(field)
            case .variants: job.variants = try field.checked(joined: "\n") { $0.variants = $1 }
            case .options: job.options = try field.checked(joined: " ") { $0.options = $1 }
            case .headers: job.headers = try field.checked(field.map()) { $0.headers = $1 }
            case .priority: job.priority = try field.whole(in: -100...100)
            case .order: job.order = try field.parsed(Self.order)
            case .schedule: schedule = try ManifestSchedule(field)
            case .notify: job.notify = try field.checked(field.text()) { $0.notify = $1 }
            case .dedupeKey: job.dedupeKey = try field.filled()
            }
        }
    }

    private static func node(_ text: String, _ path: String) throws(SettingsError) -> Node {
        let node: Node?
        do {
            node = try Yams.compose(yaml: text)
        } catch {
            throw SettingsError("The manifest \(path) can't be used: it is no YAML. \(YAMLMistake.sentence(error))")
        }
        guard let node, node.mapping != nil else {
            throw SettingsError(
                "The manifest \(path) can't be used: it has to be keys with values, such as 'urls: [https://a.example/1.jpg]'. "
                    + "A list of URLs is enqueued with: worker enqueue -f \(path)")
        }
        return node
    }

    static func order(_ text: String) throws(SettingsError) -> ExecutionOrder {
        guard let order = ExecutionOrder(rawValue: text) else {
            throw SettingsError(
                "order must be fifo or lifo, not '\(text.prefix(40))'."
                    + NearestWord.question(text, among: ExecutionOrder.allCases.map(\.rawValue)))
        }
        return order
    }

    /// The file's name without folder and ending.
    static func name(ofFile path: String) -> String {
        let file = path.split(separator: "/").last.map(String.init) ?? path
        guard let dot = file.lastIndex(of: "."), dot > file.startIndex else { return file }
        return String(file[..<dot])
    }
}

/// When a manifest's job is due, if a schedule is made of it.
struct ManifestSchedule {
    enum Key: String, CaseIterable {
        case cron, jitter, missed
        case timeZone = "time-zone"
    }

    var cron: CronExpression?
    var zone = ScheduleZone.utc
    /// Milliseconds.
    var jitter: Int64 = 0
    var missed = MissedRuns.once

    init() {}

    init(_ field: ManifestField) throws(SettingsError) {
        if field.node.scalar != nil {
            cron = try field.parsed(CronExpression.init(parsing:))
            return
        }
        for (key, field) in try ManifestFields<Key>(field.node, field.path, at: field.place).all {
            switch key {
            case .cron: cron = try field.parsed(CronExpression.init(parsing:))
            case .timeZone: zone = try field.parsed(ScheduleZone.init(named:))
            case .jitter: jitter = try field.parsed(NewSchedule.jitter(parsing:))
            case .missed: missed = try field.parsed(Self.missed)
            }
        }
        guard cron != nil else { throw SettingsError("\(field.place): schedule needs cron, such as '17 3 * * *'.") }
    }

    static func missed(_ text: String) throws(SettingsError) -> MissedRuns {
        guard let missed = MissedRuns(rawValue: text) else {
            throw SettingsError(
                "missed must be once or skip, not '\(text.prefix(40))'."
                    + NearestWord.question(text, among: ["once", "skip"]))
        }
        return missed
    }
}

import Jobs
import Yams

/// A job in a file: YAML, or JSON, which is YAML too.
struct Manifest {
    enum Key: String, CaseIterable {
        case name, urls, file, variants, options, headers, priority, order
        case dedupeKey = "dedupe-key"
    }

    /// Without the URLs of ``file``.
    private(set) var job = NewJob(urls: [])
    /// A list of URLs, whose path starts at the manifest's folder.
    private(set) var file: String?

    static func read(_ path: String) throws -> Manifest {
        try Manifest(parsing: InputFile.text(path, as: "manifest"), path)
    }

    /// - Parameter path: the file's name, for error messages.
    init(parsing text: String, _ path: String) throws(SettingsError) {
        let fields = try ManifestFields(text, path)
        for (key, field) in fields.all {
            switch key {
            case .name: job.name = try field.text()
            case .urls: job.urls = try field.list()
            case .file: file = try Self.beside(path, field.text())
            case .variants: job.variants = try field.texts().joined(separator: "\n")
            case .options: job.options = try field.texts().joined(separator: " ")
            case .headers: job.headers = try field.map()
            case .priority: job.priority = try field.priority()
            case .order: job.order = try field.order()
            case .dedupeKey: job.dedupeKey = try field.text()
            }
        }
    }

    private static func beside(_ path: String, _ file: String) -> String {
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        return file.hasPrefix("/") || file.contains("://") ? file : folder + file
    }

    static func order(_ text: String) throws(SettingsError) -> ExecutionOrder {
        guard let order = ExecutionOrder(rawValue: text) else {
            throw SettingsError("order must be fifo or lifo, not '\(text)'.")
        }
        return order
    }
}

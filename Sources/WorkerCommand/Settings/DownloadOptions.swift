import ArgumentParser
import Core
import Download
import Jobs
import PrefetchWorker

enum DownloadSettings {
    static let maxBody = Setting.bytes("max-body", "64MiB", "Largest body, counted after decompression.")
    static let maxRedirects = Setting.whole("max-redirects", 5, in: 0...50, "Maximum redirects to follow.")
    static let connectTimeout = Setting.time("connect-timeout", "10s", "Time to connect.", in: 1...Int64.max)
    static let silenceTimeout = Setting.time(
        "silence-timeout", "15s", "Idle timeout: longest time without a byte.", in: 1...Int64.max)
    static let totalTimeout = Setting.time(
        "total-timeout", "300s", "Time for a whole transfer.", in: 1...Int64.max)
    static let nameLifetime = Setting.time(
        "name-lifetime", "60s", "How long the addresses of a name are used before it is looked up again.",
        in: 1...Int64.max)
    static let retryDelay = Setting.time(
        "retry-delay", "1s", "Longest wait before the second try; it doubles with each further try.")
    static let userAgent = Setting.text("user-agent", nil, "text", "The User-Agent header, instead of the usual one.")
        .notEmpty
    static let contact = Setting.text(
        "contact", nil, "text", "A page or address that the usual User-Agent names, so that hosts can reach you."
    ).notEmpty
    static let header = Setting.text(
        "header", nil, "name: value",
        "A header for every request to every host; a job's own of that name replaces it. @FILE reads lines from a file. Repeatable.",
        isSecret: true, separator: "\n")
    static let caFile = Setting.text(
        "ca-file", nil, "file", "Certificate authorities to trust instead of the system's.")
    static let proxy = Setting<String>(
        name: "proxy",
        help:
            "A proxy. The usual environment variables are ignored, and --allow-addresses doesn't apply to the addresses that the proxy connects to.",
        placeholder: "url", isSecret: true
    ) { text throws(SettingsError) in
        let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
        // The message does not repeat the text, which may hold a password.
        guard let end = text.firstRange(of: "://"), schemes.contains(text[..<end.lowerBound].lowercased()) else {
            throw SettingsError(
                "proxy must be a URL with its scheme, such as http://proxy:8080. The schemes are: "
                    + schemes.joined(separator: ", ") + "."
                    + (text.firstRange(of: "://").map {
                        NearestWord.question(String(text[..<$0.lowerBound]), among: schemes)
                    } ?? ""))
        }
        return text
    }
    static let allowFiles = Setting.text(
        "allow-files", nil, "folder", "A folder from which file: URLs may be read; repeatable.")
    static let allowData = Setting.flag("allow-data", "Accept data: URLs, which contain their picture.")
    static let all: [any NamedSetting] = [
        maxBody, maxRedirects, connectTimeout, silenceTimeout, totalTimeout, nameLifetime, retryDelay, userAgent,
        contact,
        header, caFile, proxy, allowFiles, allowData,
    ]
}

/// How URLs are fetched, and the limits of one transfer.
struct DownloadOptions: ParsableArguments {
    @Option(DownloadSettings.maxBody) var maxBody: Int64?
    @Option(DownloadSettings.maxRedirects) var maxRedirects: Int?
    @Option(DownloadSettings.connectTimeout) var connectTimeout: Int64?
    @Option(DownloadSettings.silenceTimeout) var silenceTimeout: Int64?
    @Option(DownloadSettings.totalTimeout) var totalTimeout: Int64?
    @Option(DownloadSettings.nameLifetime) var nameLifetime: Int64?
    @Option(DownloadSettings.retryDelay) var retryDelay: Int64?
    @Option(DownloadSettings.userAgent) var userAgent: String?
    @Option(DownloadSettings.contact) var contact: String?
    @Option(DownloadSettings.header) var header: [String] = []
    @Option(DownloadSettings.caFile) var caFile: String?
    @Option(DownloadSettings.proxy) var proxy: String?
    @Option(DownloadSettings.allowFiles) var allowFiles: [String] = []
    @Flag(DownloadSettings.allowData) var allowData = false

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        var downloads = configuration.downloads
        downloads.maxBodyBytes = try settings.value(DownloadSettings.maxBody, maxBody)
        downloads.maxRedirects = try settings.value(DownloadSettings.maxRedirects, maxRedirects)
        downloads.connectTimeout = .milliseconds(try settings.value(DownloadSettings.connectTimeout, connectTimeout))
        downloads.silenceTimeout = .milliseconds(try settings.value(DownloadSettings.silenceTimeout, silenceTimeout))
        downloads.totalTimeout = .milliseconds(try settings.value(DownloadSettings.totalTimeout, totalTimeout))
        downloads.nameLifetime = .milliseconds(try settings.value(DownloadSettings.nameLifetime, nameLifetime))
        let contact =
            try settings.optional(DownloadSettings.contact, contact).map { "+\($0)" } ?? "set --contact to name one"
        downloads.userAgent =
            try settings.optional(DownloadSettings.userAgent, userAgent)
            ?? "PrefetchWorker/\(workerVersion) (image prefetcher; \(contact))"
        downloads.caFile = try settings.optional(DownloadSettings.caFile, caFile)
        downloads.proxy = try settings.optional(DownloadSettings.proxy, proxy)
        downloads.headers = try HeaderLine.common(settings.list(DownloadSettings.header, header))
        configuration.downloads = downloads
        configuration.retries.base = try settings.value(DownloadSettings.retryDelay, retryDelay)
        configuration.local.folders = try settings.list(DownloadSettings.allowFiles, allowFiles)
        configuration.local.allowsData = try settings.isOn(DownloadSettings.allowData, allowData)
    }
}

import ArgumentParser
import Core
import Jobs
import PrefetchWorker

struct ExplainCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Explains one URL: its requests, errors, next try and cached files.",
        discussion: """
            EXAMPLES:
              worker explain https://example.com/a.jpg
              worker explain https://example.com/a.jpg --json
            """,
    )

    struct Report: Encodable {
        let url: String
        let source: SourceRecord?
        let variants: [VariantRecord]
        let blacklisted: BlacklistEntry?
        /// UTC milliseconds.
        let hostBlockedUntil: WallTime?
        /// `retry-after` if the origin sent `Retry-After`; `circuit-open` if its circuit is open.
        let hostBlockedFor: String?
        let items: [ItemRecord]
        let tries: [TryRecord]
        /// Why the URL's items wait, in a worker or in the queue.
        var waits: [Wait] = []

        var isEmpty: Bool {
            source == nil && variants.isEmpty && blacklisted == nil && items.isEmpty && tries.isEmpty
        }
    }

    struct Wait: Encodable {
        let item: Int64
        let reason: String
        /// UTC milliseconds; nil if unknown.
        let until: WallTime?
    }

    @OptionGroup var common: CommonOptions

    @Argument(help: "The URL, as it was enqueued.")
    var url: String

    @Flag(help: "Show URLs as they were enqueued, with user name, password and signatures.")
    var showCredentials = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            try LookedUpURL.check([url])
            try await common.readingStore { store in
                let keys = try await store.cache.keys(ofURL: url, everyState: true)
                var source: SourceRecord?
                var entry: BlacklistEntry?
                for key in keys {
                    if source == nil { source = try await store.cache.source(key: key) }
                    if entry == nil { entry = try await store.blacklist.entries(.url(key)).first }
                }
                var variants: [VariantRecord] = []
                if let source { variants = try await store.cache.variants(ofSource: source.hash) }
                let redaction = try common.redaction()
                let host = HostNames.name(ofURL: url)
                let until = try await store.hosts.blocked()[host]
                var report = Report(
                    url: showCredentials ? url : redaction.shown(url),
                    source: showCredentials ? source : source?.hidden(by: redaction), variants: variants,
                    blacklisted: showCredentials ? entry : entry?.hidden(by: redaction),
                    hostBlockedUntil: until,
                    hostBlockedFor: until == nil
                        ? nil : try await store.hosts.memories().first { $0.host == host }?.reason,
                    items: try await store.reports.history(ofURL: url), tries: try await store.reports.tries(ofURL: url),
                )
                for item in report.items where item.state == .active || item.state == .queued {
                    guard let wait = try await store.hosts.waitReason(of: item.item) else { continue }
                    report.waits.append(Wait(item: item.item, reason: wait.reason, until: wait.until))
                }
                if json {
                    Terminal.print(try Output.json(report, pretty: true))
                } else if !report.isEmpty {
                    lines(report).forEach { Terminal.print(Terminal.safe($0)) }
                }
                if report.isEmpty {
                    Terminal.error(
                        "worker: Nothing is known of \(Terminal.safe(report.url)): no job has asked for it.")
                    throw ExitCode.notFound
                }
            }
        }
    }

    private func lines(_ report: Report) -> [String] {
        var lines = [report.url]
        if let source = report.source {
            let size = source.width.flatMap { width in source.height.map { "\(width)x\($0)" } } ?? "size unknown"
            let kept = source.isKept ? "kept" : "not kept"
            lines.append(
                "  source    \(source.format ?? "image") \(size), \(Output.bytes(source.size)), \(kept), fetched \(Output.time(source.fetchedAt))"
            )
            lines.append("            sha256 \(source.hash)")
            if let final = source.finalURL { lines.append("            came from \(final)") }
            if let looks = source.looks { lines += self.lines(looks) }
        } else {
            lines.append("  source    not cached")
        }
        for variant in report.variants {
            lines.append(
                "  variant   \(variant.spec): \(variant.format) \(variant.width)x\(variant.height), \(Output.bytes(variant.size)), \(variant.blob)"
            )
        }
        if let entry = report.blacklisted {
            let times = entry.count == 1 ? "once" : "\(entry.count) times"
            // The setting is `name=value`, or several of these.
            let flags = (entry.setting ?? "").split(separator: " ").map { "--" + $0.prefix { $0 != "=" } }
            let limit = flags.isEmpty ? "" : "; a worker with another \(flags.joined(separator: " or ")) ignores it"
            lines.append(
                "  blacklist \(entry.failure), \(times), until \(Output.time(entry.expiresAt))\(limit): \(entry.message ?? "")"
            )
        }
        if let until = report.hostBlockedUntil {
            let why =
                report.hostBlockedFor == "circuit-open"
                ? "could not be reached several times in a row, and gets no requests for now"
                : "asked for a pause (Retry-After)"
            lines.append("  host      \(why) until \(Output.time(until))")
        }
        for item in report.items {
            lines.append(line(item))
            for wait in report.waits where wait.item == item.item {
                lines.append("            " + wait.reason + (wait.until.map { " Until \(Output.time($0))." } ?? ""))
            }
        }
        for one in report.tries { lines.append(line(one)) }
        if report.items.isEmpty { lines.append("  No job has asked for it.") }
        return lines
    }

    private func lines(_ looks: ImagePlaceholders) -> [String] {
        let colour = "mostly \(looks.dominantColour ?? "transparent"), phash \(looks.perceptualHex ?? "none")"
        return ["            \(colour)", "            blurhash \(looks.blurHash), thumbhash \(looks.thumbHash)"]
    }

    private func line(_ one: TryRecord) -> String {
        var line =
            "  asked     \(Output.time(one.at)): \(one.failure ?? one.httpStatus.map { "status \($0)" } ?? "done")"
        if let bytes = one.received { line += ", \(Output.bytes(bytes))" }
        if let saved = one.saved { line += ", \(Output.bytes(saved)) rejected before they came" }
        if let redirects = one.redirects, redirects > 0 { line += ", \(redirects) redirects" }
        if let address = one.address, !address.isEmpty { line += ", \(address)" }
        if let version = one.httpVersion { line += ", HTTP/\(version)" }
        let steps = [
            ("dns", one.dns), ("connect", one.connect), ("tls", one.tls), ("first byte", one.firstByte),
            ("total", one.total),
        ]
        let times = steps.compactMap { name, time in
            time.flatMap { $0 > 0 ? "\(name) \(Output.fixed(Double($0) / 1_000, 1)) ms" : nil }
        }
        return times.isEmpty ? line : line + " (" + times.joined(separator: ", ") + ")"
    }

    private func line(_ item: ItemRecord) -> String {
        var line = "  job \(item.job), item \(item.item): \(item.state.rawValue)"
        if item.cached { line += " (was cached)" }
        if item.attempts > 0 { line += ", \(item.attempts) \(item.attempts == 1 ? "try" : "tries")" }
        if item.failure == nil, item.state == .delayed, let message = item.message { line += ": \(message)" }
        if let failure = item.failure {
            line += ", \(failure): \(item.message ?? "")"
            if line.hasSuffix(".") { line.removeLast() }
        }
        if let time = item.runAt { line += ", next try \(Output.time(time))" }
        if let time = item.finishedAt { line += ", ended \(Output.time(time))" }
        return line
    }
}

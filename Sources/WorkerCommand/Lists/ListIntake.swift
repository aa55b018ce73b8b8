import Core
import Download
import FoundationEssentials
import Jobs
import Lists
import PrefetchWorker
import SystemPackage

/// Takes the URLs of arguments, files, addresses and queries into a spool, and reports their mistakes.
final class ListIntake {
    /// Enough URLs were taken.
    private struct LimitReached: Error {}
    /// Without `--skip-invalid`, the rest of a list is not read after so many mistakes.
    private struct TooManyMistakes: Error {}

    private static let maxMistakes = 10
    private static let maxListed = 100

    let spool: EntrySpool
    /// Of the list that is being read.
    private var options: ListOptions
    private var selection: ListSelection
    private let fetcher: ListFetcher
    private let redaction: Redaction
    /// The members of `--meta`, which each URL gets unless its row has the same.
    private let common: [ListMember]
    private let tellLine: (String) -> Void
    private let isQuiet: Bool
    /// How many URLs the lists before this one gave, which its limit does not count.
    private var countBefore = 0

    private(set) var mistakes = 0
    private var leftOut = 0
    private(set) var lists = ListOptions.ReadLists()
    private var warnings = 0
    /// Sitemaps that indices have named and that are still to be read.
    private var nested: [(url: String, depth: Int)] = []
    private var nestedCount = 0

    init(_ source: JobIntake.Source, spool: EntrySpool, fetcher: ListFetcher, redaction: Redaction) throws {
        options = source.lists
        common = source.meta
        tellLine = source.tell
        isQuiet = source.isQuiet
        self.spool = spool
        self.fetcher = fetcher
        self.redaction = redaction
        selection = try source.lists.selection()
    }

    // MARK: - Sources

    /// - Parameter manifest: where the URLs stand, if they are no arguments.
    func take(arguments urls: [String], of manifest: (path: String, lines: [Int?])? = nil) throws {
        for (index, url) in urls.enumerated() {
            let line = manifest?.lines.dropFirst(index).first ?? nil
            switch URLArgument.verdict(url) {
            case .bad(let message):
                mistake(ListMistake(line: line, message), in: line == nil ? nil : manifest?.path)
                continue
            case .doubtful(let message):
                warning(ListMistake(line: line, message), in: line == nil ? nil : manifest?.path)
            case .good: break
            }
            try untilLimit { try add(ListEntry(url: url)) }
        }
    }

    /// Takes a list by its own options.
    func take(_ source: ManifestSource) async throws {
        let (options, selection) = (self.options, self.selection)
        self.options = options.applying(source)
        self.selection = try self.options.selection()
        countBefore = spool.count
        defer {
            self.options = options
            self.selection = selection
            countBefore = 0
        }
        do {
            switch source.place {
            case .list(let path): try await take(list: path)
            case .query(let query, let path): try take(query: query, from: path)
            }
        } catch let error as ListMistake {
            throw SettingsError("\(source.origin): \(error)")
        } catch let error as SettingsError {
            throw SettingsError("\(source.origin): \(error.message)")
        }
    }

    /// - Parameter path: a file, `-` for standard input, or an address.
    func take(list path: String) async throws {
        lists.names.append(path == "-" ? "standard input" : redaction.shown(path))
        guard path.contains("://") else {
            let name = path == "-" ? "standard input" : path
            let file = try InputFile.open(path, as: "list of URLs")
            defer { if path != "-" { try? file.close() } }  // Best effort: it was only read.
            try read(ListInput(file, name: name), options.request(name), depth: 0)
            return try await takeNested()
        }
        lists.areFetched = true
        try await take(address: path, depth: 0)
        try await takeNested()
    }

    func take(query: String, from path: String) throws {
        guard !path.contains("://") || path.hasPrefix("file:") else {
            throw SettingsError("--from takes a SQLite file, and '\(path)' is an address: download the file first.")
        }
        var names: [String] = []
        var place = 0
        var line = 0
        let before = spool.count
        try untilLimit {
            try OtherDatabase.read(path, query) { columns, row in
                if names.isEmpty {
                    names = columns
                    place = columns.firstIndex { $0.lowercased() == "url" } ?? 0
                }
                line += 1
                var meta: [ListMember] = []
                for (index, value) in row.enumerated() where index != place {
                    if let json = value.json { meta.append(ListMember(name: columns[index], json: json)) }
                }
                let entry = ListEntry(url: row[place].text ?? "", meta: meta)
                try check(entry, in: "\(path), row \(line) of the query")
            }
        }
        guard mistakes == 0 || options.skipInvalid else { return }
        announce("\(path): \(Self.urls(spool.count - before)) of the query\(leftOutText)")
    }

    private func take(address: String, depth: Int) async throws {
        let list = try await fetcher.fetch(address)
        let shown = Terminal.safe(redaction.shown(address))
        var request = options.request(shown)
        if request.base == nil { request.base = list.address }
        // An index names sitemaps, so --format applies to the first list only.
        if depth > 0 { request.format = nil }
        let input = ListInput(list.file, name: shown, limit: fetcher.limit)
        try read(input, request, depth: depth)
    }

    private func takeNested() async throws {
        while !nested.isEmpty, options.limit.map({ spool.count - countBefore < $0 }) ?? true {
            let next = nested.removeFirst()
            do {
                try await take(address: next.url, depth: next.depth)
            } catch let error as ListMistake {
                guard options.skipInvalid else { throw error }
                mistake(error, in: nil)
            }
        }
        nested = []
    }

    // MARK: - Reading

    private func read(_ input: ListInput, _ request: ListRequest, depth: Int) throws {
        let before = (spool.count, nestedCount)
        var format: ListFormat?
        try untilLimit {
            do {
                try ListReader.read(
                    input, request,
                    onFormat: { found, doubt in
                        format = found
                        lists.formats.insert(found)
                        if let doubt { warning(ListMistake(doubt), in: request.name) }
                    }
                ) { [self] event in try take(event, in: request.name, depth: depth) }
            } catch let error as ListMistake {
                throw SettingsError(Self.text(error, request.name))
            }
        }
        guard let format, mistakes == 0 || options.skipInvalid else { return }
        let sitemaps = nestedCount - before.1
        let found = sitemaps > 0 ? "\(sitemaps) sitemaps" : Self.urls(spool.count - before.0)
        announce("\(request.name): read as \(format.description): \(found)\(leftOutText)")
    }

    private func untilLimit(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch is LimitReached {
        } catch is TooManyMistakes {
        }
    }

    private func take(_ event: ListEvent, in name: String, depth: Int) throws {
        switch event {
        case .entry(let entry): try add(entry)
        case .mistake(let mistake):
            self.mistake(mistake, in: name)
            if !options.skipInvalid, mistakes > Self.maxMistakes { throw TooManyMistakes() }
        case .warning(let mistake): warning(mistake, in: name)
        case .nested(let url, let line):
            nestedCount += 1
            guard nestedCount <= ListFetcher.maxSitemaps, depth < ListFetcher.maxDepth else {
                throw ListMistake(
                    line: line,
                    "More than \(ListFetcher.maxSitemaps) sitemaps, or indices in indices more than \(ListFetcher.maxDepth) deep."
                )
            }
            nested.append((url, depth + 1))
        }
    }

    /// For sources that do not check their URLs.
    private func check(_ entry: ListEntry, in name: String) throws {
        switch URLCheck.verdict(entry.url) {
        case .bad(let message): try take(.mistake(ListMistake(message)), in: name, depth: 0)
        case .doubtful(let message):
            warning(ListMistake(message), in: name)
            try add(entry)
        case .good: try add(entry)
        }
    }

    private func add(_ entry: ListEntry) throws {
        guard selection.takes(entry.url) else {
            leftOut += 1
            return
        }
        var meta = entry.meta
        if !common.isEmpty {
            let own = Set(meta.map(\.name))
            meta += common.filter { !own.contains($0.name) }
        }
        if let limit = options.limit, spool.count - countBefore >= limit { throw LimitReached() }
        try spool.append(url: entry.url, meta: ListMember.object(meta))
    }

    // MARK: - Messages

    private func tell(_ text: String) { tellLine(Terminal.safe(text)) }

    /// What a list was taken for.
    private func announce(_ text: String) {
        if !isQuiet { tell(text) }
    }

    private var leftOutText: String { leftOut > 0 ? ", \(leftOut) left out by the selection" : "" }

    private func mistake(_ mistake: ListMistake, in name: String?) {
        mistakes += 1
        let most = options.skipInvalid ? Self.maxListed : Self.maxMistakes
        if mistakes <= most { tell(Self.text(mistake, name)) }
    }

    private func warning(_ mistake: ListMistake, in name: String?) {
        warnings += 1
        if warnings <= Self.maxMistakes { tell("warning: " + Self.text(mistake, name)) }
    }

    private static func text(_ mistake: ListMistake, _ name: String?) -> String {
        // Sentences about the whole list name it.
        let place = mistake.line.map { "line \($0)" }
        let isNamed = place == nil && name.map(mistake.message.contains) == true
        return [isNamed ? nil : name, place].compactMap { $0 }.map { $0 + ": " }.joined() + mistake.message
    }

    static func urls(_ count: Int) -> String { count == 1 ? "1 URL" : "\(count) URLs" }

    /// - Throws: `usage` if there were mistakes that must not be skipped, or no URLs.
    func finish() throws {
        if mistakes > 0 {
            let more = mistakes > (options.skipInvalid ? Self.maxListed : Self.maxMistakes)
            guard options.skipInvalid else {
                let count = more ? "At least \(mistakes)" : "\(mistakes)"
                throw SettingsError(
                    "\(count) \(mistakes == 1 ? "URL is" : "URLs are") wrong, and nothing was enqueued. Correct the list, or leave "
                        + "such URLs out with --skip-invalid.")
            }
            tell(
                "\(mistakes) \(mistakes == 1 ? "URL was" : "URLs were") left out as invalid\(more ? "; the first \(Self.maxListed) are listed" : "")."
            )
        }
        guard spool.count > 0 else {
            let reason =
                if leftOut > 0 {
                    "No URL is left: --host, --match or --sample left out all \(leftOut)."
                } else if mistakes > 0 {
                    "No URL is left: all were left out as invalid."
                } else if !lists.names.isEmpty {
                    "There are no URLs in \(lists.names.joined(separator: ", "))."
                } else {
                    "No URLs: name some, or a file with -f, or standard input with -f -"
                }
            throw SettingsError(reason)
        }
    }
}

import ArgumentParser
import Core
import Download
import Jobs
import Lists
import PrefetchWorker

/// How `enqueue` reads lists, and which of their URLs it takes.
struct ListOptions: ParsableArguments {
    static let maxList = Setting.bytes("max-list", "1GiB", "Largest list that is fetched, after unpacking.", atLeast: 1)

    @Option(
        help: ArgumentHelp(
            "Read the list as \(ListFormat.names); without this option the command recognises the kind.",
            valueName: "format"),
        transform: { try ListFormat(named: $0) })
    var format: ListFormat?

    @Option(
        help: ArgumentHelp(
            "The column of CSV or TSV that has the URLs: its name, or its number from 1.", valueName: "column"))
    var column: String?

    @Option(
        help: ArgumentHelp(
            "The path of the URL in objects of JSON Lines: image.url, images[0].src or images[].src.", valueName: "path"
        )
    )
    var path: String?

    @Option(help: ArgumentHelp("The address of an HTML page, for its relative URLs.", valueName: "url"))
    var base: String?

    @Option(help: ArgumentHelp("A query whose column 'url', or else first column, has the URLs.", valueName: "sql"))
    var query: String?

    @Option(help: ArgumentHelp("The SQLite file of --query, which is only read.", valueName: "file"))
    var from: String?

    @Flag(help: "Leave out lines without a usable URL, and list them.")
    var skipInvalid = false

    @Option(Setting.whole("limit", nil, in: 1...1_000_000_000, "Take this many URLs at most.")) var limit: Int?

    @Option(
        Setting<Double>(
            name: "sample", help: "Take this percentage of the URLs, at random.", placeholder: "percent",
            read: ManifestSource.percentage))
    var sample: Double?

    @Option(
        help: ArgumentHelp(
            "Take only URLs that match this pattern; * and ? stand for any characters; repeatable.",
            valueName: "pattern"))
    var match: [String] = []

    @Option(help: "Take only URLs of this host; repeatable.")
    var host: [String] = []

    @Option(RunSettings.allowAddresses) var allowAddresses: [String] = []
    @Option(Self.maxList) var maxList: Int64?

    func validate() throws {
        guard (query == nil) == (from == nil) else {
            throw ValidationError("--query and --from go together: --query 'SELECT url FROM pictures' --from shop.db")
        }
        if let base, case .bad(let message) = URLCheck.verdict(base) { throw ValidationError("--base: \(message)") }
    }

    /// These options, overridden by those that a manifest's source has of its own.
    func applying(_ source: ManifestSource) -> ListOptions {
        var options = self
        options.format = source.format ?? format
        options.column = source.column ?? column
        options.path = source.path ?? path
        options.base = source.base ?? base
        options.limit = source.limit ?? limit
        options.sample = source.sample ?? sample
        if !source.match.isEmpty { options.match = source.match }
        if !source.host.isEmpty { options.host = source.host }
        return options
    }

    func selection() throws -> ListSelection {
        var selection = ListSelection(nameOfHost: HostNames.name(ofURL:))
        selection.hosts = Set(try host.map(HostNames.parse))
        selection.patterns = match
        selection.sample = sample
        return selection
    }

    /// - Parameter folder: for temporary files, which have no name.
    func fetcher(_ common: CommonOptions, _ settings: Settings, folder: String) throws -> ListFetcher {
        var configuration = try common.configuration(settings, transforms: 1)
        // The same settings as a run's, from the environment and the configuration file.
        try DownloadOptions.parse([]).apply(to: &configuration, settings)
        try HostOptions.parse([]).apply(to: &configuration.downloads, settings)
        let ranges = try settings.list(RunSettings.allowAddresses, allowAddresses)
            .flatMap { $0.split(separator: ",") }.map { String($0.filter { $0 != " " }) }
        if !ranges.isEmpty { configuration.downloads.addresses = try AddressRanges.policy(ranges) }
        return ListFetcher(
            configuration.downloads, limit: maxList ?? 1 << 30, folder: folder, redaction: try common.redaction())
    }

    func request(_ name: String) -> ListRequest {
        var request = ListRequest(name: name)
        request.format = format
        request.column = column
        request.path = path
        request.base = base
        return request
    }
}

extension ListOptions {
    /// The lists that a command has read.
    struct ReadLists {
        /// As messages name them.
        var names: [String] = []
        var formats: Set<ListFormat> = []
        /// Whether one was an address.
        var areFetched = false
    }

    /// - Throws: `usage` if an option of the command line says how to read a kind of list that was not among these.
    func checkUse(_ read: ReadLists) throws {
        let kinds: [(option: String, isGiven: Bool, formats: Set<ListFormat>)] = [
            ("column", column != nil, [.csv, .tsv]), ("path", path != nil, [.jsonl]), ("base", base != nil, [.html]),
            ("format", format != nil, Set(ListFormat.allCases)),
        ]
        for kind in kinds where kind.isGiven && kind.formats.isDisjoint(with: read.formats) {
            guard let found = read.formats.sorted(by: { $0.rawValue < $1.rawValue }).first else {
                throw SettingsError("--\(kind.option) says how to read a list, and no list is named: add -f FILE.")
            }
            let meant = kind.formats.map(\.rawValue).sorted()
            throw SettingsError(
                "--\(kind.option) has no effect: \(read.names.joined(separator: ", ")) was read as \(found.description). "
                    + "Leave the option out, or say what the list is: --format \(meant.joined(separator: " or --format "))"
            )
        }
    }

    /// Nil unless an option is given that only fetched lists need.
    func uselessFetchOption(_ read: ReadLists) -> String? {
        guard !read.areFetched else { return nil }
        if !allowAddresses.isEmpty {
            return "--allow-addresses has no effect, since no list is fetched. For the pictures write: worker run "
                + "--allow-addresses \(allowAddresses.joined(separator: ","))"
        }
        return maxList == nil ? nil : "--max-list has no effect, since no list is fetched."
    }
}

public import ContentCache
internal import Core
internal import FoundationEssentials
public import Jobs
internal import SystemPackage

/// Writes the files of a job into a new folder: as a tree with an index, or as the tar files that the Python package
/// `webdataset` reads, in img2dataset's layout.
///
/// Every file is verified while it is read from the cache. The folder gets its name when it is complete, so no program
/// sees half an export.
public struct JobExport: Sendable {
    public enum Layout: Sendable {
        /// Files with names of a template, `index.jsonl` and `index.csv`.
        case tree(ExportNames, ExportMethod, hasPages: Bool)
        /// `00000.tar`, `00001.tar`, … with this many pictures each: `000000000.jpg`, `.json` and `.txt`.
        case shards(pictures: Int)
    }

    public struct Counts: Sendable, Hashable, Codable {
        public var pictures = 0
        public var files = 0
        public var bytes: Int64 = 0
        /// Files that the cache no longer has, or has with damaged bytes.
        public var missing = 0
        public var shards = 0
    }

    private let store: JobStore
    private let cache: ContentCache
    private let layout: Layout
    /// Empty for all.
    private let variants: Set<String>

    public init(store: JobStore, cache: ContentCache, layout: Layout, variants: Set<String> = []) {
        self.store = store
        self.cache = cache
        self.layout = layout
        self.variants = variants
    }

    /// - Parameters:
    ///   - onPicture: called after each picture.
    ///   - stop: ends the export, whose files are removed.
    /// - Returns: nil if it was stopped.
    /// - Throws: `cannotCreate` if the folder is there and not empty; errors of the database and the disk.
    public func run(
        job: JobID, to path: String, stop: StopSignal, onPicture: (Counts) -> Void = { _ in },
    ) async throws -> Counts? {
        let folder = try ExportFolder(path)
        do {
            let counts = try await fill(folder, job, stop, onPicture)
            if counts == nil { folder.discard() } else { try folder.finish() }
            return counts
        } catch let error as Failure {
            folder.discard()
            throw WorkerError(error.failureClass == .diskFull ? .tryLater : .inputOutput, error.message)
        } catch {
            folder.discard()
            throw error
        }
    }

    private func fill(
        _ folder: ExportFolder, _ job: JobID, _ stop: StopSignal, _ onPicture: (Counts) -> Void,
    ) async throws -> Counts? {
        var counts = Counts()
        let sink: any ExportSink =
            switch layout {
            case .tree(let names, let way, let hasPages):
                try TreeSink(folder, names, way, pages: hasPages ? "Job \(job)" : nil)
            case .shards(let pictures): ShardSink(folder.draft, pictures: pictures)
            }
        var last: Int64 = 0
        // Pages, so that a job of millions of items needs no more memory than one of ten.
        while true {
            let rows = try await store.reports.results(job: job, after: last, limit: 200).map(\.withoutCredentials)
            guard let end = rows.last?.item else { break }
            last = end
            for picture in rows.split(whereItemChanges: ()) {
                if stop.isRequested { return nil }
                let files = try open(picture, &counts)
                guard !files.isEmpty else { continue }
                try sink.add(files, number: counts.pictures)
                counts.pictures += 1
                counts.files += files.count
                // Any program may have written any size.
                counts.bytes = files.reduce(counts.bytes) { sum, file in
                    let (bytes, isTooMuch) = sum.addingReportingOverflow(max(0, file.row.size ?? 0))
                    return isTooMuch ? .max : bytes
                }
                onPicture(counts)
            }
        }
        counts.shards = try sink.close()
        return counts
    }

    /// The files of one item, read and verified.
    private func open(_ rows: ArraySlice<ResultRow>, _ counts: inout Counts) throws -> [ExportedFile] {
        var files: [ExportedFile] = []
        for row in rows where variants.isEmpty || variants.contains(row.variant ?? "original") {
            guard let hash = row.blob.flatMap({ BlobHash($0) }) else { continue }
            do {
                let file = try cache.openVerified(hash)
                files.append(ExportedFile(row: row, file: file, cachedAs: cache.path(of: hash).string))
            } catch {
                guard error.code == .damaged else { throw error }
                counts.missing += 1
            }
        }
        return files
    }
}

/// A result with its open file.
struct ExportedFile {
    let row: ResultRow
    let file: BlobFile
    /// Its path in the cache.
    let cachedAs: String

    /// The members of the item's JSON object that are text or numbers.
    var meta: [String: String] {
        guard let text = row.meta,
            let object = try? JSONDecoder().decode([String: MetaValue].self, from: Data(text.utf8))
        else { return [:] }  // Best effort: other JSON has no members.
        return object.compactMapValues(\.text)
    }

    private struct MetaValue: Decodable {
        let text: String?

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            // Best effort: lists, objects and null have no text.
            if let text = try? container.decode(String.self) {
                self.text = text
            } else if let number = try? container.decode(Int64.self) {
                text = "\(number)"
            } else {
                text = (try? container.decode(Double.self)).map { "\($0)" }
            }
        }
    }
}

/// Where exported pictures go.
private protocol ExportSink: AnyObject {
    /// - Parameter number: of the picture, from 0.
    func add(_ files: [ExportedFile], number: Int) throws(Failure)
    /// - Returns: the number of tar files.
    func close() throws(Failure) -> Int
}

private final class TreeSink: ExportSink {
    private let folder: ExportFolder
    private let names: ExportNames
    private let way: ExportMethod
    private let index: ExportIndex
    private let pages: ExportPages?

    init(_ folder: ExportFolder, _ names: ExportNames, _ way: ExportMethod, pages: String?) throws(Failure) {
        (self.folder, self.names, self.way) = (folder, names, way)
        index = try ExportIndex(folder: folder.draft)
        self.pages = pages.map { ExportPages(folder: folder.draft, title: $0) }
    }

    func add(_ files: [ExportedFile], number: Int) throws(Failure) {
        var added: [(name: String, size: Int64)] = []
        for file in files {
            let wanted = names.path(of: file.row, number: number + 1, meta: file.meta)
            let name = try folder.add(file.file, from: file.cachedAs, as: wanted, way)
            try index.add(file.row, file: name)
            added.append((name, file.row.size ?? 0))
        }
        guard let pages, let first = files.first else { return }
        let thumbnail = added.min { $0.size < $1.size }?.name ?? ""
        try pages.add(first.row, thumbnail: thumbnail, files: added.map(\.name))
    }

    func close() throws(Failure) -> Int {
        try index.close()
        try pages?.close()
        return 0
    }
}

private final class ShardSink: ExportSink {
    private let folder: String
    private let pictures: Int
    private var shard: TarShard?
    private var count = 0

    init(_ folder: String, pictures: Int) {
        self.folder = folder
        self.pictures = pictures
    }

    func add(_ files: [ExportedFile], number: Int) throws(Failure) {
        if number % pictures == 0 { try begin() }
        guard let shard, let first = files.first else { return }
        let key = ExportNames.padded(count - 1, digits: 5) + ExportNames.padded(number % pictures, digits: 4)
        for file in files {
            // If a picture has a single file, the file has the plain name that readers expect.
            let variant = files.count == 1 ? "" : "." + ExportNames.value(file.row.variant ?? "original")
            let name = key + variant + "." + ExportNames.fileExtension(file.row.format)
            guard let size = file.file.descriptor.size else { throw Failure(.diskError, "\(name) can't be read.") }
            try shard.add(name, file.file.descriptor, size: size)
        }
        let meta = first.meta
        if let caption = meta["caption"] ?? meta["text"] ?? meta["alt"] { try shard.add("\(key).txt", text: caption) }
        let json = JSONText.adding(
            "meta", first.row.meta, to: "{\"key\":\"\(key)\",\(try ExportIndex.json(first.row).dropFirst())")
        try shard.add("\(key).json", text: json)
    }

    private func begin() throws(Failure) {
        try shard?.close()
        shard = try TarShard("\(folder)/\(ExportNames.padded(count, digits: 5)).tar")
        count += 1
    }

    func close() throws(Failure) -> Int {
        if count == 0 { try begin() }
        try shard?.close()
        return count
    }
}

extension [ResultRow] {
    /// Runs of rows of the same item.
    fileprivate func split(whereItemChanges: Void) -> [ArraySlice<ResultRow>] {
        var runs: [ArraySlice<ResultRow>] = []
        var start = startIndex
        for index in indices where index > start && self[index].item != self[start].item {
            runs.append(self[start..<index])
            start = index
        }
        if start < endIndex { runs.append(self[start...]) }
        return runs
    }
}

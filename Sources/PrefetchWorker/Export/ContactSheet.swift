public import ContentCache
internal import Core
public import ImageFiles
public import Jobs
public import Logging
internal import SystemPackage
internal import Variants

/// Draws the pictures of a job side by side into one picture.
///
/// Everything is drawn by helpers in their sandbox: a tile of each picture, a row of tiles, and the sheet of rows. Rows
/// and sheets are variants of one white pixel, with tiles and rows as their watermarks.
public struct ContactSheet: Sendable {
    public struct Layout: Sendable {
        /// Tiles in a row.
        public var across = 10
        /// Width and height of a tile, in pixels.
        public var tile = 160
        /// Maximum pictures; the first ones of the job are drawn.
        public var limit = 100
        /// A variant's name, or `original`; nil for the smallest file of each picture that fills a tile.
        public var variant: String?

        public init() {}

        /// A variant has at most 32 effects, so a row or a sheet has at most 32 watermarks.
        public static let acrossRange = 1...32
        public static let tileRange = 16...512
        public static let maxRows = 32
    }

    public struct Counts: Sendable, Hashable, Codable {
        public var drawn = 0
        /// Pictures that are not in the cache any more, or can't be drawn.
        public var missing = 0
    }

    private let store: JobStore
    private let cache: ContentCache
    private let layout: Layout
    private let pool: HelperPool

    /// Pixels between two tiles.
    private static let gap = 8

    public init(
        store: JobStore, cache: ContentCache, layout: Layout, helpers: HelperConfiguration, limits: ImageLimits,
        logger: Logger,
    ) {
        self.store = store
        self.cache = cache
        self.layout = layout
        pool = HelperPool(configuration: helpers, limits: limits, cache: cache, logger: logger)
    }

    /// - Parameter format: the sheet's format, such as `jpeg`.
    /// - Returns: the sheet's bytes; nil if no picture could be drawn.
    /// - Throws: errors of the database and the disk; `internalError` if the sheet itself can't be drawn.
    public func draw(
        job: JobID, as format: String, onPicture: @escaping @Sendable (Counts) -> Void = { _ in },
    ) async throws -> (image: [UInt8], counts: Counts)? {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await pool.run() }
            defer { pool.close() }
            return try await sheet(job, format, onPicture)
        }
    }

    private func sheet(
        _ job: JobID, _ format: String, _ onPicture: @Sendable (Counts) -> Void,
    ) async throws -> (image: [UInt8], counts: Counts)? {
        let white = try cache.makeFile()
        try white.descriptor.writeAll(Self.whitePixel)
        var counts = Counts()
        var rows: [BlobFile] = []
        var tiles: [BlobFile] = []
        let pictures = try await pictures(of: job, &counts)
        let columns = min(layout.across, max(1, pictures.count))
        for picture in pictures {
            let tile = "tile=\(layout.tile)x\(layout.tile),contain,background:white,png"
            switch await pool.transform(picture, into: [try VariantSpec.parse(tile)]) {
            case .success(.made(_, let files)): tiles.append(contentsOf: files.prefix(1).map(\.file))
            case .failure(let failure) where failure.failureClass == .diskFull || failure.failureClass == .diskError:
                throw WorkerError(failure.failureClass == .diskFull ? .tryLater : .inputOutput, failure.message)
            default: counts.missing += 1
            }
            counts.drawn = rows.count * columns + tiles.count
            onPicture(counts)
            if tiles.count == columns {
                rows.append(try await strip(of: tiles, count: columns, isRow: true, "png", on: white))
                tiles = []
            }
        }
        if !tiles.isEmpty { rows.append(try await strip(of: tiles, count: columns, isRow: true, "png", on: white)) }
        guard !rows.isEmpty else { return nil }
        let width = columns * (layout.tile + Self.gap) + Self.gap
        let image = try await strip(of: rows, count: rows.count, isRow: false, format, on: white, across: width)
        return (try image.contents(), counts)
    }

    /// Draws pictures in a line on white.
    ///
    /// - Parameters:
    ///   - count: the number of places in the strip; some may stay empty.
    ///   - isRow: whether they stand side by side, and not one below the other.
    ///   - across: the width of pictures that stand one below the other.
    private func strip(
        of pictures: [BlobFile], count: Int, isRow: Bool, _ format: String, on white: BlobFile, across: Int = 0,
    ) async throws -> BlobFile {
        let room = (count - 1) * (layout.tile + Self.gap)
        let length = room + layout.tile + 2 * Self.gap
        let (width, height) = isRow ? (length, layout.tile) : (across, length)
        let scale = isRow ? Double(layout.tile) / Double(length) : 1
        var text = "strip=\(width)x\(height),fill,enlarge,\(format)"
        var assets: [String: Asset] = [:]
        for (index, picture) in pictures.enumerated() {
            // A margin reaches at most to the middle, so pictures in the second half are placed from the other end.
            let offset = index * (layout.tile + Self.gap)
            let isFirstHalf = offset <= room / 2
            let end = isRow ? (isFirstHalf ? "west" : "east") : (isFirstHalf ? "north" : "south")
            let margin = Self.gap + (isFirstHalf ? offset : room - offset)
            text += ",watermark:\(index):\(end):1:\(scale):\(margin)"
            assets["\(index)"] = Asset(hash: "", file: picture)
        }
        let outcome = await pool.transform(white, into: [try VariantSpec.parse(text)], assets: assets)
        guard case .success(.made(_, let files)) = outcome, let file = files.first?.file else {
            let reason = if case .failure(let failure) = outcome { failure.message } else { "a helper gave no file." }
            throw WorkerError(.internalError, "The sheet can't be drawn: \(reason)")
        }
        return file
    }

    /// The files to draw, verified.
    private func pictures(of job: JobID, _ counts: inout Counts) async throws -> [BlobFile] {
        var files: [BlobFile] = []
        var last: Int64 = 0
        while files.count < layout.limit {
            let rows = try await store.reports.results(job: job, after: last, limit: 200)
            guard let end = rows.last?.item else { break }
            last = end
            for (_, rows) in Dictionary(grouping: rows, by: \.item).sorted(by: { $0.key < $1.key }) {
                guard files.count < layout.limit, let hash = chosen(rows)?.blob.flatMap({ BlobHash($0) }) else {
                    continue
                }
                do {
                    files.append(try cache.openVerified(hash))
                } catch {
                    guard error.code == .damaged else { throw error }
                    counts.missing += 1
                }
            }
        }
        return files
    }

    private func chosen(_ rows: [ResultRow]) -> ResultRow? {
        let rows = rows.filter { $0.blob != nil }
        if let variant = layout.variant { return rows.first { $0.variant == variant } }
        let large = rows.filter { max($0.width ?? 0, $0.height ?? 0) >= layout.tile }
        return large.min { ($0.size ?? 0) < ($1.size ?? 0) } ?? rows.max { ($0.width ?? 0) < ($1.width ?? 0) }
    }

    /// A GIF of one white pixel.
    private static let whitePixel: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0,
        1,
        0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]
}

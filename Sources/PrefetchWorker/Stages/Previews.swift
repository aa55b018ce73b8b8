internal import ContentCache
internal import Core
internal import Download
internal import Foundation
public import ImageFiles
internal import Logging
internal import Synchronization
internal import SystemPackage

/// A preview of a picture that is still arriving.
public struct Preview: Sendable {
    public let url: String
    /// The picture's facts, and how much of it is visible.
    public let report: PreviewReport
    /// Bytes so far, and announced bytes if the origin announced them.
    public let received: Int64
    public let expected: Int64?
    /// A WebP of the visible rows, no side longer than 640 pixels; empty if there are none yet.
    public let image: [UInt8]
}

/// Makes previews while pictures arrive: at most one a second for each download, and never two of the same download at
/// once. A failed preview does not affect the download.
final class Previews: Sendable {
    static let interval = Duration.seconds(1)

    private let helpers: HelperPool
    private let show: @Sendable (Preview) throws -> Void
    private let busy = Mutex<Set<String>>([])
    /// Whether the last preview could not be shown. Only the first of several such failures in a row is logged.
    private let hasFailed = Mutex(false)

    init(helpers: HelperPool, show: @escaping @Sendable (Preview) throws -> Void) {
        self.helpers = helpers
        self.show = show
    }

    func watch(_ url: String) -> BodyWatch {
        BodyWatch(every: Self.interval) { [self] part in
            let file = BlobFile(owning: part.file)
            guard busy.withLock({ $0.insert(url).inserted }) else { return }
            // The download thread must not wait. There is at most one such task for each download, and the helper pool
            // limits how many work.
            Task {
                defer { _ = busy.withLock { $0.remove(url) } }
                guard let (report, image) = await helpers.preview(file, count: Int(part.received)) else { return }
                give(
                    Preview(
                        url: url, report: report, received: part.received, expected: part.expected, image: image))
            }
        }
    }

    private func give(_ preview: Preview) {
        do {
            try show(preview)
            hasFailed.withLock { $0 = false }
        } catch {
            let isFirst = hasFailed.withLock { failed in
                defer { failed = true }
                return !failed
            }
            if isFirst { helpers.logger.warning("Previews can't be written: \(error)") }
        }
    }
}

/// Writes each preview to a file named by the SHA-256 of its URL, and replaces it by the next.
public struct PreviewFolder: Sendable {
    private let folder: URL

    /// - Throws: if the folder cannot be made.
    public init(_ path: String) throws {
        folder = URL(filePath: path, directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    public func show(_ preview: Preview) throws {
        guard !preview.image.isEmpty else { return }
        let name = BlobHash(of: preview.url.utf8).hex + ".webp"
        try Data(preview.image).write(to: folder.appending(path: name), options: .atomic)
    }
}

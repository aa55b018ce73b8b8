internal import ContentCache
internal import Core
internal import Download
internal import Foundation
public import Imaging
internal import Synchronization
internal import SystemPackage

/// One look at a picture that is still arriving.
public struct Preview: Sendable {
    public let url: String
    /// The picture's facts, and how much of it can be seen.
    public let report: PreviewReport
    /// Bytes so far, and bytes announced where the origin said how many.
    public let received: Int64
    public let expected: Int64?
    /// A WebP of the complete rows, no side longer than 640 pixels; empty where there are none yet.
    public let image: [UInt8]
}

/// Shows pictures while they arrive: at most one look a second and download, and never two of
/// the same download at once. A look that fails is no failure of the download.
final class Previews: Sendable {
    static let interval = Duration.seconds(1)

    private let helpers: HelperPool
    private let show: @Sendable (Preview) -> Void
    private let busy = Mutex<Set<String>>([])

    init(helpers: HelperPool, show: @escaping @Sendable (Preview) -> Void) {
        self.helpers = helpers
        self.show = show
    }

    func watch(_ url: String) -> BodyWatch {
        BodyWatch(every: Self.interval) { [self] part in
            let file = BlobFile(owning: part.file)
            guard busy.withLock({ $0.insert(url).inserted }) else { return }
            // The download thread must not wait. The helper pool bounds how many of these do anything, and one for
            // each download in flight is the most there are.
            Task {
                defer { _ = busy.withLock { $0.remove(url) } }
                guard let (report, image) = await helpers.preview(file, count: Int(part.received)) else { return }
                show(
                    Preview(
                        url: url, report: report, received: part.received, expected: part.expected, image: image))
            }
        }
    }
}

/// Writes each preview to a file of its own, named by the SHA-256 of its URL, and replaces it by the next.
public struct PreviewFolder: Sendable {
    private let folder: URL

    /// - Throws: when the folder can't be made.
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

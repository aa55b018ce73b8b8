internal import ContentCache
internal import Core
internal import Download
internal import Foundation
internal import Glibc
internal import HelperProtocol
internal import ImageFiles
internal import Jobs
internal import Logging
internal import SystemPackage
internal import Variants

/// Checks everything that a worker needs, and reports on each part. It removes the temporary files that it makes,
/// and changes nothing else.
public struct Doctor: Sendable {
    public enum Verdict: String, Sendable, Encodable { case ok, warning, failure }

    public struct Finding: Sendable, Encodable {
        public let part: String
        public let verdict: Verdict
        public let detail: String
    }

    private let database: String
    private let location: CacheLocation
    let helpers: HelperConfiguration

    public init(
        database: String, cache: CacheLocation, helpers: HelperConfiguration = HelperConfiguration(count: 1),
    ) {
        self.database = database
        location = cache
        self.helpers = helpers
    }

    public func examine() async -> [Finding] {
        var findings = await examineLibraries()
        findings.append(await examineDatabase())
        let (cacheFinding, cache) = examineCache()
        findings.append(cacheFinding)
        if let cache {
            findings.append(await examineHelper(cache))
        } else {
            findings.append(await examineHelperByItself())
        }
        findings.append(await examineSandbox())
        return findings
    }

    /// The libraries and the coders, as the helper program has them.
    private func examineLibraries() async -> [Finding] {
        let found: HelperDescription
        do throws(Failure) {
            found = try await HelperProgram.tried(helpers)
        } catch {
            return [
                Finding(
                    part: "libraries", verdict: .failure,
                    detail: "\(error.message). Install worker again.")
            ]
        }
        return [
            finding(of: found), Finding(part: "coders", verdict: .ok, detail: found.coders.joined(separator: ", ")),
        ]
    }

    private func finding(of found: HelperDescription) -> Finding {
        if let problem = found.problem { return Finding(part: "libraries", verdict: .failure, detail: problem) }
        let missing = ImageFormat.allCases.map(\.rawValue).filter { !found.reads.contains($0) }
        let list = (found.libraries + [Downloader.libraryVersion]).joined(separator: ", ")
        let detail = """
            \(list); reads \(found.reads.joined(separator: " ")); writes \(found.writes.joined(separator: " "))
            """
        let unwritten = VariantReference.formats.filter { !found.writes.contains($0) }
        guard !missing.isEmpty || !unwritten.isEmpty else {
            return Finding(part: "libraries", verdict: .ok, detail: detail)
        }
        return Finding(
            part: "libraries", verdict: .warning,
            detail: "\(detail). \(Self.advice(unread: missing, unwritten: unwritten))")
    }

    /// What is missing, and the packages that bring it.
    static func advice(unread: [String], unwritten: [String]) -> String {
        [("readable", unread, decoders), ("writable", unwritten, encoders)].compactMap { word, formats, plugins in
            formats.isEmpty
                ? nil
                : "Not \(word) here: \(formats.joined(separator: ", ")); install \(packages(formats, plugins))."
        }.joined(separator: " ")
    }

    /// Debian's packages of codecs that libheif loads when they are there. The other formats come with libvips and the
    /// libraries that it depends on.
    static let decoders = ["heic": "libheif-plugin-libde265", "avif": "libheif-plugin-dav1d"]
    static let encoders = ["heic": "libheif-plugin-x265", "avif": "libheif-plugin-aomenc"]

    /// The packages with which Debian reads or writes these formats, such as `libheif-plugin-x265 for heic`.
    static func packages(_ formats: [String], _ plugins: [String: String]) -> String {
        formats.map { format in
            let package = plugins[format] ?? (format == "jxl" ? "libjxl-dev" : "libvips42")
            return "\(package) for \(format)"
        }.joined(separator: ", ")
    }

    private func examineDatabase() async -> Finding {
        do {
            // Reading would make the lock file that a copied database lacks.
            let hasLock = access(database + ".lock", F_OK) == 0
            let isPostgres = PostgresURL.isPostgres(database)
            let store = try hasLock || isPostgres ? JobStore.reading(path: database) : JobStore(readOnly: database)
            let engine = isPostgres ? "PostgreSQL" : "SQLite"
            let database = store.path
            let (version, complaints) = try await store.maintenance.integrity()
            let workers = try await store.workers.live()
            let failedSyncs = try await store.cache.totals().failedSyncs
            try await store.close()
            guard complaints.isEmpty else {
                return Finding(
                    part: "database", verdict: .failure, detail: "\(database) is damaged: \(complaints.prefix(3))")
            }
            let running =
                workers.isEmpty
                ? "no worker running" : "workers: " + workers.map { "pid \($0.pid)" }.joined(separator: ", ")
            guard failedSyncs == 0 else {
                return Finding(
                    part: "database", verdict: .warning,
                    detail:
                        "\(database), \(engine) \(version), intact; \(running); the disk failed to sync \(failedSyncs) "
                        + "files so far, which were discarded: check the disk's health")
            }
            return Finding(
                part: "database", verdict: .ok, detail: "\(database), \(engine) \(version), intact; \(running)")
        } catch {
            let verdict: Verdict = error.code == .cannotOpen ? .warning : .failure
            return Finding(part: "database", verdict: verdict, detail: error.message)
        }
    }

    private func examineCache() -> (Finding, ContentCache?) {
        if location.isBucket { return (examineBucket(), nil) }
        let missing = missingCache(location.folder)
        if let missing { return (missing, nil) }
        do {
            let cache = try ContentCache(readOnly: FilePath(location.folder))
            let blob = try cache.makeFile()
            let free = try cache.freeBytes()
            withExtendedLifetime(blob) {}
            let detail = "\(cache.directory), unnamed files work, \(free >> 20) MiB free"
            return (Finding(part: "cache", verdict: .ok, detail: detail), cache)
        } catch {
            return (Finding(part: "cache", verdict: .failure, detail: error.message), nil)
        }
    }

    private func examineBucket() -> Finding {
        do {
            let isNamed = try location.backing().identity() != nil
            let state = isNamed ? "is a cache" : "is no cache yet; worker init or worker run makes it one"
            return Finding(
                part: "cache", verdict: isNamed ? .ok : .warning,
                detail: "\(location.name) can be read and \(state); the folder in front of it is \(location.folder)")
        } catch let error as CacheError {
            return Finding(part: "cache", verdict: .failure, detail: error.message)
        } catch {
            return Finding(part: "cache", verdict: .failure, detail: "\(error)")
        }
    }

    /// Whether a missing cache could be made; nil if there is one, or something else in its place.
    private func missingCache(_ cache: String) -> Finding? {
        guard access(cache, F_OK) != 0, errno == ENOENT else { return nil }
        var parent = FilePath(cache).isAbsolute ? FilePath(cache) : FilePath("./\(cache)")
        repeat { parent = parent.removingLastComponent() } while !parent.isEmpty && access(parent.string, F_OK) != 0
        let folder =
            realpath(parent.isEmpty ? "." : parent.string, nil).map { path in
                defer { free(path) }
                return String(cString: path)
            } ?? parent.string
        // A file without a name, so that nothing of it stays.
        let file = Glibc.open(folder, __O_TMPFILE | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            return Finding(
                part: "cache", verdict: .failure,
                detail: "There is no cache at \(cache), and none can be made in \(folder): \(Errno(rawValue: errno)).")
        }
        close(file)
        return Finding(
            part: "cache", verdict: .warning,
            detail: "There is no cache at \(cache) yet; worker init or worker run makes it in \(folder).")
    }

    /// Examines a helper with a cache in a temporary folder, which is removed again.
    private func examineHelperByItself() async -> Finding {
        var name = Array("\(FileManager.default.temporaryDirectory.path)/worker-doctor.XXXXXX".utf8CString)
        guard let made = mkdtemp(&name) else {
            return Finding(
                part: "helper", verdict: .warning, detail: "Not tried: there is no folder for temporary files.")
        }
        let folder = String(cString: made)
        defer { try? FileManager.default.removeItem(atPath: folder) }  // Best effort: it is in the temporary folder.
        do {
            return await examineHelper(try ContentCache(directory: FilePath(folder)))
        } catch {
            return Finding(part: "helper", verdict: .failure, detail: error.message)
        }
    }

    /// Starts a real helper and has it decode an image of one pixel.
    private func examineHelper(_ cache: ContentCache) async -> Finding {
        let logger = Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() }
        let pool = HelperPool(configuration: helpers, limits: ImageLimits(), cache: cache, logger: logger)
        let outcome: Result<HelperAnswer, Failure>
        do {
            let file = try cache.makeFile()
            try file.descriptor.writeAll(Self.onePixel)
            outcome = await withTaskGroup { group in
                group.addTask { await pool.run() }
                let outcome = await pool.transform(file, into: [])
                pool.close()
                await group.waitForAll()
                return outcome
            }
        } catch {
            return Finding(part: "helper", verdict: .failure, detail: "\(error)")
        }
        if case .success(.made(let report, _)) = outcome {
            let facts = report.facts
            return Finding(
                part: "helper", verdict: .ok,
                detail: "a helper process read a \(facts.width)x\(facts.height) \(facts.formatName)")
        }
        return Finding(part: "helper", verdict: .failure, detail: "a helper process could not read a GIF: \(outcome)")
    }

    /// A GIF of one black pixel.
    private static let onePixel: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x2C, 0, 0, 0, 0, 1, 0,
        1,
        0, 0, 2, 2, 0x44, 1, 0, 0x3B,
    ]
}

/// The libraries that this program is linked with. Those for images are linked with the helper; `worker doctor` asks it.
public enum LinkedLibraries {
    /// `libcurl/7.88.1` and `SQLite 3.40.1`.
    public static var versions: [String] {
        [
            Downloader.libraryVersion.split(separator: " ").first.map(String.init) ?? "libcurl",
            "SQLite \(DatabaseGate.libraryVersion)",
        ]
    }
}

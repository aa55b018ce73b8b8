internal import Core
internal import FoundationEssentials
internal import Glibc
internal import Jobs

/// Copies of the database that the worker makes while it runs.
public struct BackupPlan: Sendable {
    /// The folder of the copies, which are named like `worker-20260102T030405Z.db`.
    public let folder: String
    /// Milliseconds between two copies.
    public var every: Int64 = 86_400_000
    /// The number of copies to keep; older ones are deleted.
    public var keep = 7

    public init(folder: String) { self.folder = folder }

    /// Makes a copy unless the latest one is recent enough. Several workers may share the folder.
    func makeIfDue(of store: JobStore) async throws {
        let now = store.database.currentTime.milliseconds
        if mkdir(folder, 0o755) != 0, errno != EEXIST {
            throw WorkerError(
                .cannotCreate, "The folder \(folder) for copies can't be made: \(String(cString: strerror(errno))).")
        }
        if let last = try copies(at: now).last, let time = Self.time(of: last), time <= now, now - time < every {
            return
        }
        Maintenance.removeLeftoverCopies(in: folder) { $0.hasPrefix("worker-") && $0.hasSuffix(".db") }
        try await store.maintenance.backUp(to: "\(folder)/\(Self.name(now))")
        for old in try copies(at: now).dropLast(max(1, keep)) where unlink("\(folder)/\(old)") != 0 && errno != ENOENT {
            throw WorkerError(
                .inputOutput, "The old copy \(old) can't be deleted: \(String(cString: strerror(errno))).")
        }
    }

    /// The names of complete copies, oldest first. Copies with a time in the future (the clock was set back) come
    /// first: their age is unknown, and the next copy must not be deleted in their place.
    private func copies(at now: Int64) throws -> [String] {
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: folder)
        } catch {
            // Without the list each copy would be due, and none deleted.
            throw WorkerError(.cannotCreate, "The folder \(folder) for copies can't be read.")
        }
        return names.compactMap { name in Self.time(of: name).map { (name: name, isAhead: $0 > now) } }
            .sorted { ($0.isAhead ? 0 : 1, $0.name) < ($1.isAhead ? 0 : 1, $1.name) }
            .map(\.name)
    }

    private static let format = Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted)

    static func name(_ time: Int64) -> String {
        "worker-\(Date(timeIntervalSince1970: Double(time / 1_000)).formatted(format)).db"
    }

    static func time(of name: String) -> Int64? {
        guard name.hasPrefix("worker-"), name.hasSuffix(".db") else { return nil }
        // Best effort: the name of another file has no time.
        let date = try? Date(String(name.dropFirst(7).dropLast(3)), strategy: format)
        return date.map { Int64($0.timeIntervalSince1970) * 1_000 }
    }
}

internal import ContentCache
internal import Core
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Recently used sources in memory, so that variants requested later need no disk access.
///
/// They are files without names in a file system in memory, since helpers get descriptors. The least recently used are
/// evicted first; memory pressure evicts all.
public final class MemoryTier: Sendable {
    public struct Limits: Hashable, Sendable {
        /// Maximum bytes of all sources together; 0 for no tier.
        public var bytes: Int64 = 64 << 20
        public var count = 1_000

        public init() {}
    }

    private struct State {
        var files: LRUCache<BlobHash, BlobFile>
        var hits = 0
    }

    private let limits: Limits
    private let folder: String
    private let state: Mutex<State>

    public convenience init(limits: Limits) { self.init(limits: limits, folder: "/dev/shm") }

    /// - Parameter folder: a folder of a file system in memory.
    init(limits: Limits, folder: String) {
        self.limits = limits
        self.folder = folder
        state = Mutex(State(files: LRUCache(countLimit: limits.count, costLimit: limits.bytes)))
    }

    var contents: (count: Int, bytes: Int64, hits: Int) { state.withLock { ($0.files.count, $0.files.cost, $0.hits) } }

    func source(_ hash: BlobHash) -> BlobFile? {
        state.withLock { state in
            guard let file = state.files.value(hash) else { return nil }
            state.hits += 1
            return file
        }
    }

    /// Keeps a copy of verified bytes. Blocks on the disk. Lack of space is no error, since the disk has the bytes.
    func keep(_ hash: BlobHash, _ file: BlobFile) {
        guard limits.bytes > 0, limits.count > 0, state.withLock({ $0.files.peek(hash) == nil }) else { return }
        guard let size = file.descriptor.size, size <= limits.bytes / 4, let copy = copy(of: file, size: size) else {
            return
        }
        state.withLock { $0.files.insert(copy, for: hash, cost: size) }
    }

    func empty() { state.withLock { $0.files.removeAll() } }

    /// Reopened for reading only, so that no helper can change the shared bytes.
    private func copy(of file: BlobFile, size: Int64) -> BlobFile? {
        let raw = open(folder, __O_TMPFILE | O_DIRECTORY | O_RDWR | O_CLOEXEC, 0o600)
        guard raw >= 0 else { return nil }
        defer { close(raw) }
        var offset: off_t = 0
        while offset < size {
            let count = sendfile(raw, file.descriptor.rawValue, &offset, Int(size) - offset)
            guard count > 0 || errno == EINTR else { return nil }
            if count == 0 { return nil }
        }
        // Best effort: without a copy in memory, the source is read from the disk.
        return (try? FileDescriptor(rawValue: raw).openedForReading()).map { BlobFile(owning: $0, isInMemory: true) }
    }
}

/// Memory pressure, as the kernel reports it (PSI).
enum MemoryPressure {
    static let file = "/proc/pressure/memory"

    /// The percentage of the last ten seconds in which some task waited for memory; nil if the kernel does not report
    /// it.
    static func recent(_ path: String = file) -> Double? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 200)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let field = text.split(separator: " ").first { $0.hasPrefix("avg10=") }
        return field.flatMap { Double($0.dropFirst(6)) }
    }

    /// Above this percentage the tier is emptied.
    static let limit = 10.0
}

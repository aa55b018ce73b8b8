internal import ContentCache
internal import Core
internal import Glibc
internal import Synchronization
internal import SystemPackage

/// Recently used sources, kept in memory so that variants asked for later skip the disk.
///
/// They are files without names in the memory's own file system, since helpers are handed descriptors. The least recently
/// used go first, and all of them when the machine runs short of memory.
public final class MemoryTier: Sendable {
    public struct Limits: Hashable, Sendable {
        /// Bytes of all sources together; 0 for no tier.
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

    /// - Parameter folder: where memory is a file system.
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

    /// Keeps a copy of bytes that were just verified. Blocks on the disk. No room is no failure: the disk has them.
    func keep(_ hash: BlobHash, _ file: BlobFile) {
        guard limits.bytes > 0, limits.count > 0, state.withLock({ $0.files.peek(hash) == nil }) else { return }
        guard let size = file.descriptor.size, size <= limits.bytes / 4, let copy = copy(of: file, size: size) else {
            return
        }
        state.withLock { $0.files.insert(copy, for: hash, cost: size) }
    }

    func empty() { state.withLock { $0.files.removeAll() } }

    /// Opened anew for reading only: who gets it can't change what others will see.
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
        return (try? FileDescriptor(rawValue: raw).openedForReading()).map { BlobFile(owning: $0) }
    }
}

/// Memory pressure, as the kernel reports it (PSI).
enum MemoryPressure {
    static let file = "/proc/pressure/memory"

    /// The part of the last ten seconds in which some task waited for memory, in per cent; nil where the kernel doesn't say.
    static func recent(_ path: String = file) -> Double? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 200)
        guard fgets(&line, Int32(line.count), file) != nil else { return nil }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let field = text.split(separator: " ").first { $0.hasPrefix("avg10=") }
        return field.flatMap { Double($0.dropFirst(6)) }
    }

    /// Above this the tier is emptied.
    static let limit = 10.0
}

internal import ContentCache
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

    private struct Entry {
        let file: BlobFile
        let size: Int64
        var used: UInt64
    }

    private struct State {
        var entries: [BlobHash: Entry] = [:]
        var bytes: Int64 = 0
        var clock: UInt64 = 0
        var hits = 0
    }

    private let limits: Limits
    private let folder: String
    private let state = Mutex(State())

    public convenience init(limits: Limits) { self.init(limits: limits, folder: "/dev/shm") }

    /// - Parameter folder: where memory is a file system.
    init(limits: Limits, folder: String) {
        self.limits = limits
        self.folder = folder
    }

    var contents: (count: Int, bytes: Int64, hits: Int) { state.withLock { ($0.entries.count, $0.bytes, $0.hits) } }

    func source(_ hash: BlobHash) -> BlobFile? {
        state.withLock { state in
            guard let entry = state.entries[hash] else { return nil }
            state.clock += 1
            state.hits += 1
            state.entries[hash]?.used = state.clock
            return entry.file
        }
    }

    /// Keeps a copy of bytes that were just verified. Blocks on the disk. No room is no failure: the disk has them.
    func keep(_ hash: BlobHash, _ file: BlobFile) {
        guard limits.bytes > 0, limits.count > 0, !state.withLock({ $0.entries[hash] != nil }) else { return }
        var info = stat()
        guard fstat(file.descriptor.rawValue, &info) == 0, Int64(info.st_size) <= limits.bytes / 4,
            let copy = copy(of: file, size: Int64(info.st_size))
        else { return }
        state.withLock { state in
            state.clock += 1
            state.entries[hash] = Entry(file: copy, size: Int64(info.st_size), used: state.clock)
            state.bytes += Int64(info.st_size)
            while state.bytes > limits.bytes || state.entries.count > limits.count {
                guard let oldest = state.entries.min(by: { $0.value.used < $1.value.used }) else { break }
                state.entries[oldest.key] = nil
                state.bytes -= oldest.value.size
            }
        }
    }

    func empty() {
        state.withLock { state in
            state.entries = [:]
            state.bytes = 0
        }
    }

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
        let readable = open("/proc/self/fd/\(raw)", O_RDONLY | O_CLOEXEC)
        return readable < 0 ? nil : BlobFile(owning: FileDescriptor(rawValue: readable))
    }
}

/// What the kernel says of memory being short (PSI).
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

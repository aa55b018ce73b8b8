internal import Glibc
internal import SystemPackage

/// How many files the process may have open.
enum DescriptorLimit {
    /// The descriptors that a worker needs: those of the runtime, SQLite and the helpers, and for each transfer its connection,
    /// its body and its variants. There may be half as many transfers more than the concurrency. Dispatch ends a program that
    /// has no descriptor left for its own events.
    static func least(concurrency: Int) -> Int { 128 + 4 * (concurrency + max(1, concurrency / 2)) }

    static var current: Int { Int(clamping: limit.rlim_cur) }

    /// Raises the soft limit to the hard limit, up to the number that a worker can use.
    static func raise() {
        var limit = limit
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        // Where it can't be raised, fewer items are held at once.
        _ = setrlimit(resource, &limit)
    }

    private static let resource = __rlimit_resource_t(7)  // RLIMIT_NOFILE, an enumeration of C that Swift can't name.

    private static var limit: rlimit {
        var limit = rlimit(rlim_cur: 256, rlim_max: 256)
        _ = getrlimit(resource, &limit)
        return limit
    }
}

/// Memory that the program no longer uses and the C library still holds.
enum FreeMemory {
    private typealias Trim = @convention(c) (Int) -> CInt

    /// Asked for by its name: Swift's module of the C library leaves it out, and other C libraries have none.
    private static let trim: Trim? = dlsym(nil, "malloc_trim").map { unsafeBitCast($0, to: Trim.self) }

    /// Gives it back to the system: malloc_trim(3). Takes some milliseconds.
    static func giveBack() { _ = trim?(0) }
}

/// Another process's memory, as the kernel counts it.
enum ProcessMemory {
    /// Bytes in memory that are not those of files, its own program and libraries among them.
    ///
    /// - Returns: nil when the process is gone.
    static func own(by process: pid_t) -> Int? {
        // A process that has ended has no memory: no error to tell of.
        guard let file = try? FileDescriptor.open("/proc/\(process)/statm", .readOnly, options: .closeOnExec) else {
            return nil
        }
        defer { try? file.close() }
        let text = try? String(unsafeUninitializedCapacity: 256) {
            try file.read(into: UnsafeMutableRawBufferPointer($0))
        }
        // Pages: all that are mapped, those in memory, those of them that files share, … (proc(5))
        let pages = (text ?? "").split(separator: " ").prefix(3).compactMap { Int($0) }
        return pages.count == 3 ? (pages[1] - pages[2]) * sysconf(Int32(_SC_PAGESIZE)) : nil
    }
}

internal import Glibc
internal import SystemPackage

/// The limit on the process's open files.
enum DescriptorLimit {
    /// The descriptors that a worker needs: for the runtime, SQLite and the helpers, and for each transfer its
    /// connection, its body and its variants. Overcommit adds half as many transfers as the concurrency. Dispatch ends
    /// a program that has no descriptor left for its own events.
    static func least(concurrency: Int) -> Int { 128 + 4 * (concurrency + max(1, concurrency / 2)) }

    static var current: Int { Int(clamping: limit.rlim_cur) }

    /// Raises the soft limit to the hard limit, up to the number that a worker can use.
    static func raise() {
        var limit = limit
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        // If it cannot be raised, fewer items are in flight at once.
        _ = setrlimit(resource, &limit)
    }

    /// Raises the limit, and checks that it suffices for a worker.
    ///
    /// - Throws: `unavailable` if the hard limit is lower than the worker needs.
    static func raise(concurrency: Int) throws(WorkerError) {
        raise()
        let least = least(concurrency: concurrency)
        guard current >= least else {
            throw WorkerError(
                .unavailable,
                "Only \(current) files may be open at once, and a worker with this --concurrency needs \(least): raise it with "
                    + "ulimit -n or LimitNOFILE=.")
        }
    }

    private static let resource = __rlimit_resource_t(7)  // RLIMIT_NOFILE, an enumeration of C that Swift can't name.

    private static var limit: rlimit {
        var limit = rlimit(rlim_cur: 256, rlim_max: 256)
        _ = getrlimit(resource, &limit)
        return limit
    }
}

/// Memory that the program has freed and the C library still holds.
enum FreeMemory {
    private typealias Trim = @convention(c) (Int) -> CInt

    /// Looked up by name, since Swift's module of the C library does not export it and other C libraries lack it.
    private static let trim: Trim? = dlsym(nil, "malloc_trim").map { unsafeBitCast($0, to: Trim.self) }

    /// Returns it to the system: malloc_trim(3). Takes some milliseconds.
    static func giveBack() { _ = trim?(0) }
}

/// Another process's memory, as the kernel counts it.
enum ProcessMemory {
    /// Bytes of resident memory without file pages, such as the program and its libraries.
    ///
    /// - Returns: nil if it can't be read, as when the process has ended.
    static func own(by process: pid_t) -> Int? {
        // Best effort, like the calls below: without the number a helper is replaced only after its count of images.
        guard let file = try? FileDescriptor.open("/proc/\(process)/statm", .readOnly, options: .closeOnExec) else {
            return nil
        }
        defer { try? file.close() }
        let text = try? String(unsafeUninitializedCapacity: 256) {
            try file.read(into: UnsafeMutableRawBufferPointer($0))
        }
        // Pages: all mapped ones, the resident ones, the resident ones of files, … (proc(5))
        let pages = (text ?? "").split(separator: " ").prefix(3).compactMap { Int($0) }
        return pages.count == 3 ? (pages[1] - pages[2]) * sysconf(Int32(_SC_PAGESIZE)) : nil
    }
}

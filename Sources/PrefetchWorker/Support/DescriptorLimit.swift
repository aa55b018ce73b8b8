internal import Glibc

/// How many files the process may have open.
enum DescriptorLimit {
    /// What a worker can't do with fewer than: what the runtime, SQLite and the helpers have open, and for each transfer its
    /// connection, its body and what is made of it; there may be half as many more than the concurrency. Dispatch ends a program that has none left for its own events.
    static func least(concurrency: Int) -> Int { 128 + 4 * (concurrency + max(1, concurrency / 2)) }

    static var current: Int { Int(clamping: limit.rlim_cur) }

    /// Raises it as far as it goes, up to what a worker can use.
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

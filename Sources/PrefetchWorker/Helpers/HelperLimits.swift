internal import Glibc
internal import Synchronization
internal import SystemPackage

/// The resource limits of a helper process.
extension HelperMain {
    static func limitResources() {
        limit(__rlimit_resource_t(2), to: memoryLimit)  // RLIMIT_DATA
        limit(__rlimit_resource_t(1), to: fileLimit)  // RLIMIT_FSIZE
        limit(__rlimit_resource_t(7), to: descriptorLimit)  // RLIMIT_NOFILE
        // A crash is answered by a new helper; its memory image would only fill the disk.
        limit(__rlimit_resource_t(4), to: 0)  // RLIMIT_CORE
        // A file that grows too long is a failed write, not the end of the helper. Touched once before, so that a handler
        // finds it made.
        hasOutgrown.store(false, ordering: .relaxed)
        signal(SIGXFSZ) { _ in HelperMain.hasOutgrown.store(true, ordering: .relaxed) }
    }

    private static func limit(_ resource: __rlimit_resource_t, to value: UInt64) {
        var limit = rlimit()
        getrlimit(resource, &limit)
        let value = min(rlim_t(value), limit.rlim_max)
        limit = rlimit(rlim_cur: value, rlim_max: value)
        if setrlimit(resource, &limit) != 0 {
            complain("helper \(getpid()): limit \(resource) can't be set: \(Errno(rawValue: errno))")
        }
    }

    /// The limit counts from the process's start, so it is moved along with every image. SIGXCPU ends the helper.
    static func limitProcessorTime(_ seconds: Int) {
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        let spent = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(0), &limit)
        limit.rlim_cur = min(rlim_t(spent + seconds), limit.rlim_max)
        setrlimit(__rlimit_resource_t(0), &limit)  // RLIMIT_CPU
    }

    /// Moved along with every image, too; the process's own stays the most that it can be.
    static func limitFiles(_ bytes: Int64?) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(1), &limit)
        limit.rlim_cur = min(bytes.map { rlim_t(max(0, $0)) } ?? limit.rlim_max, limit.rlim_max)
        setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
    }
}

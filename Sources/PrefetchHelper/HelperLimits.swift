internal import Glibc
internal import HelperProtocol
internal import Synchronization
internal import SystemPackage

/// The resource limits of a helper process.
extension HelperMain {
    static func limitResources() {
        limit(__rlimit_resource_t(2), to: HelperBounds.memory)  // RLIMIT_DATA
        limit(__rlimit_resource_t(1), to: HelperBounds.file)  // RLIMIT_FSIZE
        limit(__rlimit_resource_t(7), to: HelperBounds.descriptors)  // RLIMIT_NOFILE
        // The pool replaces a crashed helper; a core file would only fill the disk.
        limit(__rlimit_resource_t(4), to: 0)  // RLIMIT_CORE
        // A file that would exceed the limit fails to be written, and does not end the helper. `hasOutgrown` is
        // initialised here, before a signal handler uses it.
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

    /// RLIMIT_CPU counts from the process's start, so it is raised before every image. SIGXCPU ends the helper.
    static func limitProcessorTime(_ seconds: Int) {
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        let spent = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(0), &limit)
        limit.rlim_cur = min(rlim_t(spent + seconds), limit.rlim_max)
        setrlimit(__rlimit_resource_t(0), &limit)  // RLIMIT_CPU
    }

    /// Set before every image too; it cannot exceed the process's own limit.
    static func limitFiles(_ bytes: Int64?) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(1), &limit)
        limit.rlim_cur = min(bytes.map { rlim_t(max(0, $0)) } ?? limit.rlim_max, limit.rlim_max)
        setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
    }
}

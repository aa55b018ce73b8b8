internal import Glibc
internal import SystemPackage

/// What the kernel knows of another process's memory.
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

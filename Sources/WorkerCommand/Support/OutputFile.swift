import Glibc
import SystemPackage

/// Files that people name for a command's output.
enum OutputFile {
    /// Replaces the file by a new one, so that a reader sees the old content or the new one, also after a crash.
    ///
    /// - Throws: `Errno`.
    static func replace(_ path: String, _ text: String) throws { try replace(path, Array(text.utf8)) }

    static func replace(_ path: String, _ bytes: [UInt8]) throws {
        var template = Array("\(path).XXXXXX".utf8CString)
        let raw = mkstemp(&template)
        guard raw >= 0 else { throw Errno(rawValue: errno) }
        _ = fcntl(raw, F_SETFD, FD_CLOEXEC)
        do {
            try FileDescriptor(rawValue: raw).closeAfter {
                _ = try FileDescriptor(rawValue: raw).writeAll(bytes)
                guard fchmod(raw, 0o644) == 0, fsync(raw) == 0 else { throw Errno(rawValue: errno) }
            }
            guard rename(template, path) == 0 else { throw Errno(rawValue: errno) }
        } catch {
            unlink(template)
            throw error
        }
    }
}

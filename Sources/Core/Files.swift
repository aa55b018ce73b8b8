internal import Glibc
package import SystemPackage

/// The target of a symbolic link; nil if there is none that can be read.
package func linkTarget(of path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0, count < buffer.count else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

extension FileDescriptor {
    /// The open file's size in bytes; nil if it is unknown.
    package var size: Int64? {
        var info = Glibc.stat()
        return fstat(rawValue, &info) == 0 ? Int64(info.st_size) : nil
    }

    /// Opens the same file again, for reading only, at its start: a receiver of the descriptor must not change bytes
    /// that others will read. Opening it through /proc also works for files without a name (open(2), `O_TMPFILE`).
    package func openedForReading() throws -> FileDescriptor {
        try FileDescriptor.open(FilePath("/proc/self/fd/\(rawValue)"), .readOnly, options: .closeOnExec)
    }
}

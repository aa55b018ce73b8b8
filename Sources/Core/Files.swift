internal import Glibc
package import SystemPackage

/// What a symbolic link says; nil where there is none that can be read.
package func linkTarget(of path: String) -> String? {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0, count < buffer.count else { return nil }
    return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

extension FileDescriptor {
    /// Bytes of the open file; nil where that can't be told.
    package var size: Int64? {
        var info = Glibc.stat()
        return fstat(rawValue, &info) == 0 ? Int64(info.st_size) : nil
    }

    /// The same file, opened anew for nothing but reading, at its start: what others will read is not for the receiver to
    /// change. The way through /proc works for files without a name, too (open(2), `O_TMPFILE`).
    package func openedForReading() throws -> FileDescriptor {
        try FileDescriptor.open(FilePath("/proc/self/fd/\(rawValue)"), .readOnly, options: .closeOnExec)
    }
}

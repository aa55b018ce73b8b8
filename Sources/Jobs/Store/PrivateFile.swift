internal import Glibc

/// Files that hold URLs, headers and passwords: readable by their owner and its group at most.
enum PrivateFile {
    static let mode: mode_t = 0o640

    /// Makes an empty file where none is, so that SQLite needn't make one that all may read; what it keeps beside it has the
    /// same permissions. The umask takes away more, and never less. A file that is there stays as it is.
    static func make(_ path: String) {
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        // What can't be made is SQLite's to complain about.
        if file >= 0 { close(file) }
    }
}

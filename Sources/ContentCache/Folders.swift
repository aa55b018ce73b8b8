internal import Glibc
internal import SystemPackage

/// Basic operations on folders and small files.
enum Folders {
    static func absolute(_ path: FilePath) -> FilePath {
        if path.isAbsolute { return path.lexicallyNormalized() }
        guard let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return FilePath(String(cString: current)).pushing(path).lexicallyNormalized()
    }

    static func make(_ path: FilePath) throws(CacheError) {
        var reason = failureOfMaking(path)
        if reason == .noSuchFileOrDirectory, path.components.count > 1 {
            try make(path.removingLastComponent())
            // Only once: some file systems return this error although the parent folder exists.
            reason = failureOfMaking(path)
        }
        if let reason { throw CacheError(.cannotCreate, "The folder \(path) can't be created: \(reason).") }
        var info = stat()
        guard stat(path.string, &info) == 0, info.st_mode & S_IFMT == S_IFDIR else {
            throw CacheError(.cannotCreate, "\(path) is in the way: it is not a folder.")
        }
    }

    private static func failureOfMaking(_ path: FilePath) -> Errno? {
        mkdir(path.string, 0o755) == 0 || errno == EEXIST ? nil : Errno(rawValue: errno)
    }

    static func isEmpty(_ path: FilePath) throws(CacheError) -> Bool {
        guard let directory = opendir(path.string) else {
            throw CacheError(Errno(rawValue: errno), "The folder \(path) can't be read")
        }
        defer { closedir(directory) }
        while let name = try next(directory, at: path) {
            // Another worker may be writing its marker at this moment.
            if !name.hasPrefix("CACHE_VERSION") { return false }
        }
        return true
    }

    /// The next name of an open folder; nil at its end. readdir(3) returns nil for an error, too.
    static func next(_ folder: OpaquePointer, at path: FilePath) throws(CacheError) -> String? {
        while true {
            errno = 0
            guard let entry = readdir(folder) else {
                if errno != 0 { throw CacheError(Errno(rawValue: errno), "The folder \(path) can't be read") }
                return nil
            }
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { return name }
        }
    }

    /// The text of a small file; `nil` if there is none.
    static func smallFile(_ path: FilePath) throws(CacheError) -> String? {
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
            return try file.closeAfter {
                try withUnsafeTemporaryAllocation(byteCount: 8_192, alignment: 1) { buffer in
                    let count = try file.read(into: buffer)
                    return String(decoding: buffer[..<count], as: UTF8.self)
                }
            }
        } catch let error as Errno where error == .noSuchFileOrDirectory {
            return nil
        } catch {
            throw CacheError(.disk, "\(path) can't be read: \(error).")
        }
    }
}

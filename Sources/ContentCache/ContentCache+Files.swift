internal import Glibc
internal import SystemPackage

/// Plain steps on folders and small files.
extension ContentCache {
    static func absolute(_ path: FilePath) -> FilePath {
        if path.isAbsolute { return path.lexicallyNormalized() }
        guard let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return FilePath(String(cString: current)).pushing(path).lexicallyNormalized()
    }

    /// - Parameter withParents: make missing folders above it first. The second attempt goes without, since some file
    ///   systems (`/proc`) answer ENOENT for ever.
    func makeDirectory(_ path: FilePath, withParents: Bool = true) throws(CacheError) {
        if mkdir(path.string, 0o755) == 0 || errno == EEXIST {
            var info = stat()
            guard stat(path.string, &info) == 0, info.st_mode & S_IFMT == S_IFDIR else {
                throw CacheError(.cannotCreate, "\(path) is in the way: it is not a folder.")
            }
            return
        }
        let reason = Errno(rawValue: errno)
        if withParents, reason == .noSuchFileOrDirectory, path.components.count > 1 {
            try makeDirectory(path.removingLastComponent())
            return try makeDirectory(path, withParents: false)
        }
        throw CacheError(.cannotCreate, "The folder \(path) can't be created: \(reason).")
    }

    func isEmpty(_ path: FilePath) throws(CacheError) -> Bool {
        guard let directory = opendir(path.string) else {
            throw CacheError(Errno(rawValue: errno), "The folder \(path) can't be read")
        }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            // A second worker may be writing its marker at this moment.
            if name != ".", name != "..", !name.hasPrefix("CACHE_VERSION") { return false }
        }
        return true
    }

    /// The text of a file of a few bytes; `nil` when there is none.
    static func smallFile(_ path: FilePath) throws(CacheError) -> String? {
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
            return try file.closeAfter {
                try withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
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

    func syncDirectory(_ path: FilePath) throws(Errno) {
        let raw = Glibc.open(path.string, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard raw >= 0 else { throw Errno(rawValue: errno) }
        defer { Glibc.close(raw) }
        guard fsync(raw) == 0 else { throw Errno(rawValue: errno) }
    }
}

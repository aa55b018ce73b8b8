internal import Glibc
public import SystemPackage

extension ContentCache {
    /// Whether a blob lies under its name with this size. Its bytes are not read.
    public func exists(_ hash: BlobHash, size: Int64) -> Bool {
        var info = stat()
        return lstat(path(of: hash).string, &info) == 0 && info.st_mode & S_IFMT == S_IFREG
            && Int64(info.st_size) == size
    }

    /// Opens a blob after reading all of it: what is handed out was verified. Damaged bytes go to quarantine.
    ///
    /// - Throws: `damaged` when it is missing or isn't what its name says; `disk`.
    public func openVerified(_ hash: BlobHash) throws(CacheError) -> BlobFile {
        let file: BlobFile
        do {
            file = BlobFile(
                owning: try FileDescriptor.open(path(of: hash), .readOnly, options: [.closeOnExec, .noFollow]))
        } catch {
            if (error as? Errno) == .noSuchFileOrDirectory {
                throw CacheError(.damaged, "The blob \(hash) is missing.")
            }
            throw CacheError(.disk, "The blob \(hash) can't be opened: \(error).")
        }
        guard try BlobHash.reading(file.descriptor).hash == hash else {
            try moveToQuarantine(hash)
            throw CacheError(.damaged, "The blob \(hash) was damaged; its bytes are in \(quarantine).")
        }
        return file
    }

    /// Puts a blob's bytes aside, where a person can look at them.
    public func moveToQuarantine(_ hash: BlobHash) throws(CacheError) {
        let target = quarantine.appending("\(hash.hex).\(getpid()).\(UInt32.random(in: 0 ... .max))")
        if rename(path(of: hash).string, target.string) != 0, errno != ENOENT {
            throw CacheError(Errno(rawValue: errno), "The blob \(hash) can't be moved to quarantine")
        }
    }

    /// Every name under `blobs/`, whatever it is, a folder at a time.
    ///
    /// - Parameter visit: gets the file's path and its hash, or `nil` for a file that has no business there.
    public func forEachFile(_ visit: (FilePath, BlobHash?) throws -> Void) throws {
        for shard in 0..<256 {
            let name = String(shard < 16 ? "0" : "") + String(shard, radix: 16)
            let folder = blobs.appending(name)
            guard let directory = opendir(folder.string) else {
                throw CacheError(Errno(rawValue: errno), "The folder \(folder) can't be read")
            }
            defer { closedir(directory) }
            while let entry = readdir(directory) {
                let file = withUnsafePointer(to: entry.pointee.d_name) { tuple in
                    tuple.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if file == "." || file == ".." { continue }
                let hash = BlobHash(file)
                try visit(folder.appending(file), hash?.shard == name ? hash : nil)
            }
        }
    }
}

extension ContentCache {
    /// What a blob is found to be.
    public enum Finding: Sendable {
        case good
        case missing
        /// Its bytes were moved to quarantine.
        case damaged
    }

    /// Reads a blob and says what it is.
    public func check(_ hash: BlobHash, size: Int64) -> Finding {
        guard exists(hash, size: size) else {
            var info = stat()
            guard lstat(path(of: hash).string, &info) == 0 else { return .missing }
            // Of another size than it was published with. Quarantine may fail on a broken disk; the finding stands.
            try? moveToQuarantine(hash)
            return .damaged
        }
        do throws(CacheError) {
            _ = try openVerified(hash)
            return .good
        } catch {
            return .damaged
        }
    }
}

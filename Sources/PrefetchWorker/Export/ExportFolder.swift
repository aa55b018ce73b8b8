internal import ContentCache
internal import Core
internal import FoundationEssentials
internal import Glibc
internal import SystemPackage

/// How an exported file gets its bytes.
public enum ExportMethod: String, CaseIterable, Sendable {
    /// A hard link to the cache's file: it takes no space, and outlives the eviction. On another disk, a copy.
    case link
    /// Shares the disk's blocks until one of the files changes (Btrfs, XFS). On other file systems, a copy.
    case reflink
    case copy
    /// A symbolic link into the cache, which dangles when the file is evicted.
    case symlink
}

/// A new folder that is filled under another name beside it, and gets its own name when it is complete.
final class ExportFolder {
    private let path: String
    /// The name until the export is complete.
    let draft: String
    private var folders: Set<String> = []
    /// How often a name was taken, for names that many files would have.
    private var repeats: [String: Int] = [:]
    private static let maxRemembered = 100_000

    /// - Throws: `cannotCreate` if there is such a folder with files in it, or it can't be made.
    init(_ path: String) throws(WorkerError) {
        self.path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        draft = self.path + ".partial"
        try Self.check(self.path)
        discard()  // Removes the draft that a stopped export has left.
        guard mkdir(draft, 0o755) == 0 else {
            let reason = Errno(rawValue: errno)
            throw WorkerError(.cannotCreate, "The folder \(draft) can't be made: \(reason).")
        }
    }

    /// Checked before anything is exported, since the folder gets its name at the end.
    private static func check(_ path: String) throws(WorkerError) {
        var info = stat()
        guard lstat(path, &info) == 0 else {
            // If the reason is that its parent folder can't be searched, making the draft there fails, too.
            return
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw WorkerError(.cannotCreate, "\(path) is there and no folder. Name a new folder.")
        }
        let names: [String]
        do {
            names = try FileManager.default.contentsOfDirectory(atPath: path)
        } catch {
            throw WorkerError(.cannotCreate, "The folder \(path) can't be read. Name a new folder.")
        }
        guard names.isEmpty else {
            throw WorkerError(.cannotCreate, "\(path) is there and not empty. Name a new folder, or remove it first.")
        }
    }

    /// Gives the folder its name.
    func finish() throws(WorkerError) {
        // An empty folder of that name is replaced.
        guard rename(draft, path) == 0 else {
            let reason = Errno(rawValue: errno)
            throw WorkerError(.cannotCreate, "\(draft) can't be renamed to \(path): \(reason).")
        }
    }

    /// Removes the draft. Best effort: the next export to the same folder removes the rest.
    func discard() { try? FileManager.default.removeItem(atPath: draft) }

    /// Adds a file under a name of its own.
    ///
    /// - Parameter name: a path in the folder; a number is added if it is taken.
    /// - Returns: the path in the folder.
    func add(_ file: BlobFile, from cached: String, as name: String, _ way: ExportMethod) throws(Failure) -> String {
        let name = makeFolders(of: name) ? name : name.replacing("/", with: "_")
        var count = repeats[name] ?? 0
        while true {
            let tried = count == 0 ? name : Self.numbered(name, count + 1)
            if try put(file, cached, "\(draft)/\(tried)", way) {
                if repeats.count < Self.maxRemembered || repeats[name] != nil { repeats[name] = count + 1 }
                return tried
            }
            count += 1
        }
    }

    /// `a.thumb.webp` and 2 give `a.thumb-2.webp`.
    private static func numbered(_ name: String, _ number: Int) -> String {
        let start = name.lastIndex(of: "/").map { name.index(after: $0) } ?? name.startIndex
        guard let dot = name[start...].lastIndex(of: "."), dot > start else { return "\(name)-\(number)" }
        return "\(name[..<dot])-\(number)\(name[dot...])"
    }

    /// - Returns: false if a file has the name of one of the folders.
    private func makeFolders(of name: String) -> Bool {
        var end = name.startIndex
        while let slash = name[end...].firstIndex(of: "/") {
            let folder = String(name[..<slash])
            if !folders.contains(folder) {
                guard mkdir("\(draft)/\(folder)", 0o755) == 0 || errno == EEXIST else { return false }
                var info = stat()
                guard lstat("\(draft)/\(folder)", &info) == 0, info.st_mode & S_IFMT == S_IFDIR else { return false }
                if folders.count < Self.maxRemembered { folders.insert(folder) }
            }
            end = name.index(after: slash)
        }
        return true
    }

    /// - Returns: false if the name is taken.
    private func put(_ file: BlobFile, _ cached: String, _ target: String, _ way: ExportMethod) throws(Failure) -> Bool
    {
        switch way {
        case .symlink:
            if symlink(cached, target) == 0 { return true }
        case .link:
            // By the descriptor, so that it is the file whose bytes were verified.
            let source = "/proc/self/fd/\(file.descriptor.rawValue)"
            if linkat(AT_FDCWD, source, AT_FDCWD, target, AT_SYMLINK_FOLLOW) == 0 { return true }
            if [EXDEV, EPERM, EMLINK, ENOENT].contains(errno) { return try copy(file, target, sharesBlocks: false) }
        case .copy: return try copy(file, target, sharesBlocks: false)
        case .reflink: return try copy(file, target, sharesBlocks: true)
        }
        if errno == EEXIST || errno == EISDIR { return false }
        throw Failure(.diskError, "\(target) can't be made: \(Errno(rawValue: errno)).")
    }

    private func copy(_ file: BlobFile, _ target: String, sharesBlocks: Bool) throws(Failure) -> Bool {
        let raw = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o644)
        guard raw >= 0 else {
            if errno == EEXIST || errno == EISDIR { return false }
            throw Failure(.diskError, "\(target) can't be made: \(Errno(rawValue: errno)).")
        }
        let copy = FileDescriptor(rawValue: raw)
        do {
            try copy.closeAfter {
                if !sharesBlocks || ioctl(raw, Self.ficlone, file.descriptor.rawValue) != 0 {
                    try Self.copy(file.descriptor, to: copy)
                }
            }
            return true
        } catch {
            unlink(target)
            let isFull = (error as? Errno)?.isFullDisk == true
            throw Failure(isFull ? .diskFull : .diskError, "\(target) can't be written: \(error).")
        }
    }

    static func copy(_ source: FileDescriptor, to target: FileDescriptor) throws {
        var offset: off_t = 0
        while true {
            let count = sendfile(target.rawValue, source.rawValue, &offset, 1 << 20)
            if count == 0 { return }
            if count < 0, errno != EINTR { throw Errno(rawValue: errno) }
        }
    }

    /// FICLONE, see ioctl_ficlone(2); a macro that Swift can't read.
    private static let ficlone: UInt = 0x4004_9409
}

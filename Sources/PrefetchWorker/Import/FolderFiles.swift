internal import ContentCache
internal import Core
internal import Glibc
internal import SystemPackage

/// The regular files of a folder and of the folders in it, each with the URL that a template makes of its path.
///
/// It reads the folders as the files are asked for, so that a folder of any size takes the same memory. Symbolic links
/// and special files are left out.
public struct FolderFiles: AsyncSequence, Sendable {
    private let folder: OpenFolder
    private let template: URLTemplate
    private let patterns: [String]

    /// - Parameter patterns: only files whose path in the folder is like one of these, as in fnmatch(3), where `*` also
    ///   stands for `/`; all files if there is none.
    /// - Throws: `usage` if the folder can't be opened.
    public init(_ folder: String, template: URLTemplate, matching patterns: [String] = []) throws(WorkerError) {
        self.folder = try OpenFolder(folder)
        self.template = template
        self.patterns = patterns
    }

    public func makeAsyncIterator() -> Iterator { Iterator(FolderWalk(folder, template, patterns)) }

    public struct Iterator: AsyncIteratorProtocol {
        private let walk: FolderWalk
        private let queue = BlockingQueue("folder")
        private var found: ArraySlice<NewPicture> = []

        init(_ walk: FolderWalk) { self.walk = walk }

        public mutating func next() async -> NewPicture? {
            if found.isEmpty { found = await queue.run { [walk] in walk.next(32)[...] } }
            return found.popFirst()
        }
    }
}

/// Goes through a folder. `@unchecked`, since its iterator makes one call at a time, and waits for it.
final class FolderWalk: @unchecked Sendable {
    private struct Level {
        let stream: OpaquePointer
        /// The path of the folder, with a slash at its end; empty for the first.
        let path: [UInt8]
    }

    /// Maximum folders inside each other; each is open while it is read.
    private static let maxDepth = 64

    private let folder: OpenFolder
    private let template: URLTemplate
    private let patterns: [String]
    private var levels: [Level] = []
    private var isBegun = false

    init(_ folder: OpenFolder, _ template: URLTemplate, _ patterns: [String]) {
        (self.folder, self.template, self.patterns) = (folder, template, patterns)
    }

    deinit { for level in levels { closedir(level.stream) } }

    /// The next files, opened; none at the end. Blocks.
    func next(_ most: Int) -> [NewPicture] {
        var files: [NewPicture] = []
        if !isBegun {
            isBegun = true
            enter([46], in: folder.descriptor.rawValue, path: [], &files)
        }
        while files.count < most, let level = levels.last {
            errno = 0
            guard let entry = readdir(level.stream) else {
                if errno != 0 { refuse(level.path, PictureIntake.unreadable(Errno(rawValue: errno)), &files) }
                closedir(level.stream)
                levels.removeLast()
                continue
            }
            take(entry, of: level, &files)
        }
        return files
    }

    private func take(_ entry: UnsafeMutablePointer<dirent>, of level: Level, _ files: inout [NewPicture]) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
        guard name != [46], name != [46, 46] else { return }
        let path = level.path + name
        let place = dirfd(level.stream)
        switch kind(of: entry, name, in: place) {
        case S_IFDIR: enter(name, in: place, path: path + [UInt8(ascii: "/")], &files)
        case S_IFREG where isWanted(path):
            do throws(Failure) {
                files.append(picture(path, .opened(try OpenFolder.file(named: name, in: place))))
            } catch {
                refuse(path, error, &files)
            }
        default: return
        }
    }

    /// The kind of a file, as in `st_mode`; 0 if it is gone.
    private func kind(of entry: UnsafeMutablePointer<dirent>, _ name: [UInt8], in place: CInt) -> mode_t {
        switch Int(entry.pointee.d_type) {
        case 4: return S_IFDIR  // DT_DIR
        case 8: return S_IFREG  // DT_REG
        case 0: break  // DT_UNKNOWN: the file system does not say it here.
        default: return S_IFLNK
        }
        var status = stat()
        let code = withCString(of: name) { fstatat(place, $0, &status, AT_SYMLINK_NOFOLLOW) }
        if code == 0 { return status.st_mode & S_IFMT }
        // If its kind can't be found out, opening it as a file reports the error.
        return errno == ENOENT ? 0 : S_IFREG
    }

    private func enter(_ name: [UInt8], in place: CInt, path: [UInt8], _ files: inout [NewPicture]) {
        guard levels.count < Self.maxDepth else {
            return refuse(
                path, Failure(.http(404), "It is nested in more than \(Self.maxDepth) folders, and is skipped."), &files
            )
        }
        let raw = openAt(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard raw >= 0, let stream = fdopendir(raw) else {
            let error = Errno(rawValue: errno)
            if raw >= 0 { close(raw) }
            return refuse(path, PictureIntake.unreadable(error), &files)
        }
        levels.append(Level(stream: stream, path: path))
    }

    private func isWanted(_ path: [UInt8]) -> Bool {
        patterns.isEmpty || withCString(of: path) { path in patterns.contains { fnmatch($0, path, 0) == 0 } }
    }

    private func refuse(_ path: [UInt8], _ failure: Failure, _ files: inout [NewPicture]) {
        files.append(picture(path.isEmpty ? [46] : path, .refused(failure)))
    }

    private func picture(_ path: [UInt8], _ content: NewPicture.Content) -> NewPicture {
        NewPicture(content, url: template.url(path: path), name: String(decoding: path, as: UTF8.self))
    }
}

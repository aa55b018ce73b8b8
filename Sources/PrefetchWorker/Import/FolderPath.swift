internal import ContentCache
internal import Core
internal import Glibc
internal import SystemPackage

/// A folder whose files are read, and never left: no symbolic link below it is followed.
final class OpenFolder: Sendable {
    let descriptor: FileDescriptor

    /// - Throws: `usage` if it can't be opened.
    init(_ path: String) throws(WorkerError) {
        do {
            descriptor = try FileDescriptor.open(FilePath(path), .readOnly, options: [.directory, .closeOnExec])
        } catch {
            throw WorkerError(.usage, "The folder \(path) can't be opened: \(error)")
        }
    }

    deinit { try? descriptor.close() }  // Best effort: it was only read.

    /// Opens a regular file by its path in the folder.
    func open(path: [UInt8]) throws(Failure) -> BlobFile {
        let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(Array.init)
        guard let name = parts.last, parts.allSatisfy({ !$0.isEmpty && $0 != [46] && $0 != [46, 46] }) else {
            throw Failure(.http(404), "It is no path of a file in the folder.")
        }
        var place = descriptor.rawValue
        defer { if place != descriptor.rawValue { Glibc.close(place) } }
        for part in parts.dropLast() {
            let next = openAt(place, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard next >= 0 else { throw PictureIntake.unreadable(Errno(rawValue: errno)) }
            if place != descriptor.rawValue { Glibc.close(place) }
            place = next
        }
        return try Self.file(named: name, in: place)
    }

    /// Opens a regular file. Does not wait for the other end of a pipe, and does not touch devices.
    static func file(named name: [UInt8], in folder: CInt) throws(Failure) -> BlobFile {
        let raw = openAt(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
        guard raw >= 0 else {
            throw errno == ELOOP
                ? Failure(.notAnImage, "It is a symbolic link, and links are not followed.")
                : PictureIntake.unreadable(Errno(rawValue: errno))
        }
        let file = BlobFile(owning: FileDescriptor(rawValue: raw))
        var status = stat()
        guard fstat(raw, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(.notAnImage, "It is no regular file.")
        }
        return file
    }
}

/// openat(2) with a name that need not be UTF-8.
func openAt(_ folder: CInt, _ name: [UInt8], _ flags: CInt) -> CInt {
    guard !name.contains(0) else {
        errno = ENOENT
        return -1
    }
    return withCString(of: name) { openat(folder, $0, flags) }
}

/// Lends a name that need not be UTF-8 as C text.
func withCString<R>(of name: [UInt8], _ body: (UnsafePointer<CChar>) -> R) -> R {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: name.count + 1) { buffer in
        for (place, byte) in name.enumerated() { buffer.initializeElement(at: place, to: CChar(bitPattern: byte)) }
        buffer.initializeElement(at: name.count, to: 0)
        // A buffer of at least one element has an address.
        return body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped))
    }
}

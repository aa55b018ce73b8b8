internal import ContentCache
internal import Core
internal import Glibc
internal import ImageFiles
internal import Jobs
internal import SystemPackage

/// Brings a picture's bytes into the file system of the cache, and refuses files whose first bytes are
/// not those of a picture.
struct PictureIntake: Sendable {
    enum Taken: Sendable {
        case new(PendingBlob)
        /// The bytes are those of the given source; nothing was written.
        case known(SourceRecord)
    }

    let files: SourceFiles
    let inspector: HeaderInspector
    /// Maximum bytes of a picture.
    let limit: Int64

    /// The bytes that decide whether it is a picture.
    private static let inspected = 64 << 10

    /// - Parameter known: a cached source. If the file has its size, its hash is compared first.
    func take(_ picture: NewPicture, known: SourceRecord?) async throws(Failure) -> Taken {
        switch picture.content {
        case .refused(let failure): throw failure
        case .bytes(let bytes):
            try check(size: Int64(bytes.count))
            try check(beginning: bytes)
            if let known, known.size == Int64(bytes.count), BlobHash(of: bytes).hex == known.hash {
                return .known(known)
            }
            return .new(try await files.blocking { () throws(Failure) in try files.store(bytes, as: "The picture") })
        case .path(let path):
            return try await files.blocking { () throws(Failure) in
                let file = BlobFile(owning: try Self.open(path))
                return try take(file, known: known)
            }
        case .opened(let file):
            return try await files.blocking { () throws(Failure) in try take(file, known: known) }
        case .stream(let descriptor):
            return try await files.blocking { () throws(Failure) in
                .new(try copied(descriptor, expected: 0, beginning: nil))
            }
        }
    }

    private static func open(_ path: String) throws(Failure) -> FileDescriptor {
        do {
            return try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
        } catch {
            throw unreadable(error)
        }
    }

    /// The failure of a file that can't be read. It has the class of a missing file, or `disk-error` if this machine
    /// lacks descriptors, processes or memory.
    static func unreadable(_ error: any Error) -> Failure {
        let isShortage = (error as? Errno)?.isShortage == true
        return Failure(isShortage ? .diskError : .http(404), "The file can't be read: \(error)")
    }

    private func check(size: Int64) throws(Failure) {
        guard size > 0 else { throw Failure(.badImage, "The file is empty.") }
        guard size <= limit else {
            throw Failure(.tooLarge, "The file has \(size) bytes, and --max-body allows \(limit).")
        }
    }

    private func check(beginning: [UInt8]) throws(Failure) {
        let verdict = beginning.withUnsafeBytes { bytes in
            inspector.inspect(UnsafeRawBufferPointer(rebasing: bytes.prefix(Self.inspected)))
        }
        if case .refuse(let failure) = verdict { throw failure }
    }

    // MARK: - Files. Blocks.

    private func take(_ file: BlobFile, known: SourceRecord?) throws(Failure) -> Taken {
        defer { withExtendedLifetime(file) {} }
        var status = stat()
        guard fstat(file.descriptor.rawValue, &status) == 0 else { throw Self.unreadable(Errno(rawValue: errno)) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw Failure(.notAnImage, "It is a folder, and no picture.") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return .new(try copied(file.descriptor, expected: 0, beginning: nil))
        }
        let size = Int64(status.st_size)
        try check(size: size)
        if let known, known.size == size, try isSame(file, as: known) { return .known(known) }
        var beginning = [UInt8](repeating: 0, count: min(Int(size), Self.inspected))
        do {
            let count = try beginning.withUnsafeMutableBytes { buffer in
                try file.descriptor.read(fromAbsoluteOffset: 0, into: buffer)
            }
            beginning.removeLast(beginning.count - count)
        } catch {
            throw Self.unreadable(error)
        }
        try check(beginning: beginning)
        return .new(try copied(file.descriptor, expected: size, beginning: beginning))
    }

    private func isSame(_ file: BlobFile, as known: SourceRecord) throws(Failure) -> Bool {
        do throws(CacheError) {
            return try PendingBlob(reading: file).hash.hex == known.hash
        } catch {
            throw Self.unreadable(error)
        }
    }

    /// Makes the cache's file share the blocks of another until one of them is changed, in file systems that have this.
    ///
    /// - Returns: nil if this is not possible.
    private func cloned(_ source: FileDescriptor, to file: BlobFile, size: Int64) throws(Failure) -> PendingBlob? {
        guard ioctl(file.descriptor.rawValue, Self.clone, source.rawValue) == 0 else { return nil }
        let blob = try hashed(file)
        guard blob.size <= size else { throw Failure(.badImage, "The file has grown while it was read.") }
        return blob
    }

    /// Hashes the bytes in the cache, since the original file may change meanwhile.
    private func hashed(_ file: BlobFile) throws(Failure) -> PendingBlob {
        do throws(CacheError) {
            return try PendingBlob(reading: file)
        } catch {
            throw Failure(error)
        }
    }

    /// FICLONE, see ioctl_ficlone(2); a macro that Swift can't read.
    private static let clone: UInt = 0x4004_9409

    /// - Parameters:
    ///   - expected: the bytes for which space is reserved at once.
    ///   - beginning: the first bytes, if they were inspected.
    private func copied(
        _ source: FileDescriptor, expected: Int64, beginning: [UInt8]?,
    ) throws(Failure) -> PendingBlob {
        let file = try files.make(for: expected)
        if expected > 0, let blob = try cloned(source, to: file, size: expected) { return blob }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer { buffer.deallocate() }
        var (size, reserved) = (Int64(0), expected)
        var seen = beginning ?? []
        while true {
            let count: Int
            do { count = try source.read(into: buffer) } catch { throw Self.unreadable(error) }
            if count == 0 { break }
            size += Int64(count)
            guard size <= limit else { throw Failure(.tooLarge, "The file is larger than --max-body, \(limit) bytes.") }
            if size > reserved {
                try reserve(size - reserved, for: file)
                reserved = size
            }
            if beginning == nil, seen.count < Self.inspected {
                seen += UnsafeRawBufferPointer(rebasing: buffer[..<min(count, Self.inspected - seen.count)])
                try check(beginning: seen)
            }
            do {
                try file.descriptor.writeAll(buffer[..<count])
            } catch {
                let isFull = (error as? Errno)?.isFullDisk == true
                throw Failure(isFull ? .diskFull : .diskError, "The copy can't be written: \(error)")
            }
        }
        try check(size: size)
        return try hashed(file)
    }

    private func reserve(_ bytes: Int64, for file: BlobFile) throws(Failure) {
        do {
            try file.cacheReservation?.growWaiting(by: Int(clamping: bytes))
        } catch let error as Errno where error == .fileTooLarge {
            throw Failure(.tooLarge, "The file is larger than the cache may be (--cache-max-size).")
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.diskError, "Space in the cache can't be reserved: \(error)")
        }
    }
}

internal import Glibc
internal import SystemPackage

/// Entries in a temporary file without a name, so that a list of any length needs little memory and leaves no file
/// behind. A short list needs no file.
///
/// `@unchecked`, since the command that fills it has ended before its entries are read, one after the other.
public final class EntrySpool: @unchecked Sendable {
    private let folder: String
    private var file: FileDescriptor?
    private var buffer: [UInt8] = []
    private var position = 0
    private var isReading = false
    public private(set) var count = 0

    private static let bufferSize = 1 << 18

    /// - Parameter folder: where a file is made: that of the database, which needs space for the same entries anyway.
    public init(folder: String) {
        self.folder = folder
        buffer.reserveCapacity(Self.bufferSize)
    }

    deinit { try? file?.close() }  // Best effort: the file has no name, and nothing needs it any more.

    private static func unnamedFile(in folder: String) throws -> FileDescriptor {
        let flags = O_RDWR | O_CLOEXEC
        let unnamed = open(folder, flags | CInt(__O_TMPFILE) | O_DIRECTORY, 0o600)
        if unnamed >= 0 { return FileDescriptor(rawValue: unnamed) }
        // Some file systems have no files without a name.
        var template = Array((folder + "/.worker-list-XXXXXX").utf8CString)
        let named = mkstemp(&template)
        guard named >= 0 else { throw Errno(rawValue: errno) }
        _ = fcntl(named, F_SETFD, FD_CLOEXEC)
        unlink(template)
        return FileDescriptor(rawValue: named)
    }

    public func append(url: String, meta: String?) throws {
        append(url)
        append(meta ?? "")
        count += 1
        if buffer.count >= Self.bufferSize { try flush() }
    }

    private func append(_ text: String) {
        let length = UInt32(clamping: text.utf8.count)
        withUnsafeBytes(of: length) { buffer.append(contentsOf: $0) }
        buffer.append(contentsOf: text.utf8)
    }

    private func flush() throws {
        do {
            let file = try file ?? Self.unnamedFile(in: folder)
            self.file = file
            try file.writeAll(buffer)
        } catch let error as Errno {
            throw ListMistake("The list can't be kept on the disk, in \(folder): \(error).")
        }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Goes to the first entry. No more can be appended after that.
    public func rewind() throws {
        position = 0
        guard let file else { return }
        if !isReading { try flush() }
        isReading = true
        try file.seek(offset: 0, from: .start)
        buffer.removeAll(keepingCapacity: true)
    }

    /// The next entry; nil after the last.
    public func next() throws -> (url: String, meta: String?)? {
        guard let url = try text() else { return nil }
        let meta = try text() ?? ""
        return (url, meta.isEmpty ? nil : meta)
    }

    private func text() throws -> String? {
        guard try fill(4) else { return nil }
        let length = buffer.withUnsafeBytes { Int($0.loadUnaligned(fromByteOffset: position, as: UInt32.self)) }
        position += 4
        guard try fill(length) else { throw ListMistake("The list on the disk is incomplete.") }
        defer { position += length }
        return String(decoding: buffer[position..<position + length], as: UTF8.self)
    }

    /// - Returns: false at the end of the file.
    private func fill(_ count: Int) throws -> Bool {
        guard buffer.count - position < count else { return true }
        guard let file else { return false }
        buffer.removeSubrange(..<position)
        position = 0
        while buffer.count < count {
            let more = try [UInt8](unsafeUninitializedCapacity: max(Self.bufferSize, count)) { space, filled in
                filled = try file.read(into: UnsafeMutableRawBufferPointer(space))
            }
            if more.isEmpty { return false }
            buffer += more
        }
        return true
    }
}

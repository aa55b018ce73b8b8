internal import Core
internal import Glibc
internal import SystemPackage

/// One tar file of an export, in the format that POSIX calls ustar.
final class TarShard {
    private let file: FileDescriptor
    private let path: String
    /// Bytes that are not written yet: headers, small members and padding.
    private var buffer: [UInt8] = []
    private var isOpen = true
    private static let block = 512
    /// The largest size that a header can state: eleven octal digits.
    static let maxMember: Int64 = 0o77_777_777_777

    init(_ path: String) throws(Failure) {
        self.path = path
        do {
            file = try FileDescriptor.open(
                FilePath(path), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerReadWrite, .groupRead, .otherRead])
        } catch {
            throw Failure(.diskError, "\(path) can't be made: \(error).")
        }
    }

    func add(_ name: String, text: String) throws(Failure) {
        let bytes = Array(text.utf8)
        try writing { () throws in
            buffer += Self.header(name, size: Int64(bytes.count))
            buffer += bytes
            pad(Int64(bytes.count))
            if buffer.count > 1 << 18 { try flush() }
        }
    }

    /// - Parameter source: its bytes from the start; the offset of the descriptor does not matter and stays.
    func add(_ name: String, _ source: FileDescriptor, size: Int64) throws(Failure) {
        guard size <= Self.maxMember else {
            throw Failure(.diskError, "\(name) is too large for a tar file.")
        }
        try writing { () throws in
            buffer += Self.header(name, size: size)
            try flush()
            let end = off_t(size)
            var offset: off_t = 0
            while offset < end {
                let count = sendfile(file.rawValue, source.rawValue, &offset, min(end - offset, 1 << 20))
                if count == 0 { throw Errno.ioError }
                if count < 0, errno != EINTR { throw Errno(rawValue: errno) }
            }
            pad(size)
        }
    }

    deinit {
        // An export that was stopped, whose files are removed.
        if isOpen { try? file.close() }
    }

    /// Writes the two empty blocks at the end, and syncs the file.
    func close() throws(Failure) {
        try writing { () throws in
            buffer += [UInt8](repeating: 0, count: 2 * Self.block)
            try flush()
            guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
            isOpen = false
            try file.close()
        }
    }

    private func writing(_ body: () throws -> Void) throws(Failure) {
        do {
            try body()
        } catch {
            throw Failure(
                (error as? Errno)?.isFullDisk == true ? .diskFull : .diskError, "\(path) can't be written: \(error).")
        }
    }

    private func flush() throws {
        try file.writeAll(buffer)
        buffer.removeAll(keepingCapacity: true)
    }

    private func pad(_ size: Int64) {
        let rest = Int(size % Int64(Self.block))
        if rest > 0 { buffer += [UInt8](repeating: 0, count: Self.block - rest) }
    }

    /// A regular file of owner 0 and time 0, so that equal members make equal files.
    static func header(_ name: String, size: Int64) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: block)
        func put(_ text: String, at offset: Int, _ width: Int) {
            for (index, byte) in text.utf8.prefix(width).enumerated() { header[offset + index] = byte }
        }
        func octal(_ value: Int64, digits: Int) -> String {
            let text = String(value, radix: 8)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        put(name, at: 0, 100)
        put("0000644", at: 100, 7)
        put("0000000", at: 108, 7)
        put("0000000", at: 116, 7)
        put(octal(size, digits: 11), at: 124, 11)
        put("00000000000", at: 136, 11)
        put("        ", at: 148, 8)  // The checksum counts its own field as spaces.
        put("0", at: 156, 1)
        put("ustar", at: 257, 5)
        put("00", at: 263, 2)
        let sum = header.reduce(Int64(0)) { $0 + Int64($1) }
        put(octal(sum, digits: 6), at: 148, 6)
        header[154] = 0
        return header
    }
}

internal import ContentCache
internal import Core
internal import Foundation
internal import Jobs
internal import SystemPackage

/// Sources that need no network, if the operator allows them: files in given folders, and pictures in `data:` URLs.
public struct LocalSources: Sendable, Hashable {
    /// Folders whose files may be read, including subfolders. None by default.
    public var folders: [String] = []
    /// Whether `data:` URLs are read.
    public var allowsData = false

    public init() {}
}

extension LocalSources {
    /// Whether a URL has one of these schemes, allowed or not.
    static func isLocal(_ url: String) -> Bool {
        let start = url.prefix(5).lowercased()
        return start == "file:" || start == "data:"
    }

    /// Blocks on the disk.
    func read(
        _ url: String, limit: Int64, into makeFile: (Int64) throws(Failure) -> BlobFile,
    ) throws(Failure) -> FetchedSource {
        if url.prefix(5).lowercased() == "data:" {
            guard allowsData else {
                throw Failure(.denied, "data: URLs are not read without --allow-data.")
            }
            let bytes = try Self.decoded(url)
            guard Int64(bytes.count) <= limit else { throw Self.tooLarge(limit) }
            return try Self.stored(in: makeFile(Int64(bytes.count))) { file in try file.writeAll(bytes) }
        }
        guard !folders.isEmpty else {
            throw Failure(.denied, "file: URLs are not read without --allow-files.")
        }
        let source = try open(url)
        defer { try? source.close() }  // Best effort: it was only read.
        var status = stat()
        guard fstat(source.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(.invalidURL, "The URL does not name a regular file.")
        }
        guard Int64(status.st_size) <= limit else { throw Self.tooLarge(limit) }
        return try Self.stored(in: makeFile(Int64(status.st_size))) { file in
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
            defer { buffer.deallocate() }
            var left = Int64(status.st_size)
            // A file that grows meanwhile is cut, and then its picture is incomplete.
            while left > 0 {
                let count: Int
                do {
                    count = try source.read(into: buffer)
                } catch {
                    // The folder's disk failed, and not the cache's: only this item fails, and it is tried again.
                    throw Failure(.http(500), "The file can't be read: \(error).")
                }
                if count == 0 { break }
                try file.writeAll(buffer[..<min(count, Int(left))])
                left -= Int64(count)
            }
        }
    }

    private static let absent: [Errno] = [
        .noSuchFileOrDirectory, .notDirectory, .permissionDenied, .tooManySymbolicLinkLevels, .fileNameTooLong,
        .noSuchAddressOrDevice,
    ]

    private static func tooLarge(_ limit: Int64) -> Failure {
        Failure(.tooLarge, "The source is larger than \(limit) bytes (--max-body).")
    }

    /// Checks the opened file and not its name, which may have changed in between.
    private func open(_ url: String) throws(Failure) -> FileDescriptor {
        guard let parsed = URL(string: url), parsed.isFileURL,
            ["", "localhost"].contains(parsed.host(percentEncoded: false) ?? "")
        else { throw Failure(.invalidURL, "The file: URL can't be read.") }
        let path = FilePath(parsed.path(percentEncoded: false))
        guard isNamedWithin(path) else {
            throw Failure(.denied, "The file is in no folder of --allow-files.")
        }
        let file: FileDescriptor
        do {
            file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking])
        } catch {
            let error = error as? Errno ?? .ioError
            if error.isShortage { throw Failure(.diskError, "The file can't be opened: \(error).") }
            guard Self.absent.contains(error) else { throw Failure(.http(500), "The file can't be read: \(error).") }
            // A missing file, and a file outside of the folders to which a link leads, get the same message. So the
            // message does not reveal which files exist.
            throw Failure(.http(404), "There is no such file in the folders of --allow-files.")
        }
        let target = linkTarget(of: "/proc/self/fd/\(file.rawValue)") ?? ""
        guard folders.compactMap(Self.realPath).contains(where: { Self.is(target, in: $0) }) else {
            try? file.close()  // Best effort: it was only opened.
            throw Failure(.http(404), "There is no such file in the folders of --allow-files.")
        }
        return file
    }

    /// Whether the path names something in one of the folders, by its text alone: a link may still lead elsewhere.
    private func isNamedWithin(_ path: FilePath) -> Bool {
        let path = path.lexicallyNormalized().string
        return folders.contains { folder in
            [FilePath(folder).lexicallyNormalized().string, Self.realPath(folder)].compactMap(\.self)
                .contains { Self.is(path, in: $0) }
        }
    }

    private static func `is`(_ path: String, in folder: String) -> Bool {
        path.hasPrefix(folder.hasSuffix("/") ? folder : folder + "/")
    }

    private static func realPath(_ folder: String) -> String? {
        guard let real = realpath(folder, nil) else { return nil }
        defer { free(real) }
        return String(cString: real)
    }

    private static func stored(
        in file: BlobFile, _ write: (FileDescriptor) throws -> Void,
    ) throws(Failure) -> FetchedSource {
        do {
            try write(file.descriptor)
            let blob = try PendingBlob(reading: file)
            return FetchedSource(blob, from: .file)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure(.diskError, "The source can't be stored: \(error)")
        }
    }

    /// RFC 2397.
    private static func decoded(_ url: String) throws(Failure) -> [UInt8] {
        let nonsense = Failure(.invalidURL, "The data: URL can't be read.")
        guard let comma = url.firstIndex(of: ",") else { throw nonsense }
        guard let text = String(url[url.index(after: comma)...]).removingPercentEncoding else {
            // Bytes that are not UTF-8: each octet is decoded by itself.
            return octets(url[url.index(after: comma)...])
        }
        guard url[..<comma].lowercased().hasSuffix(";base64") else { return octets(url[url.index(after: comma)...]) }
        let clean = text.filter { !$0.isWhitespace }
        let padded = clean + String(repeating: "=", count: (4 - clean.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: padded) else { throw nonsense }
        return Array(data)
    }

    private static func octets(_ text: Substring) -> [UInt8] {
        var result: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            if byte == UInt8(ascii: "%"), digits.count == 2, let value = UInt8(String(Substring(digits)), radix: 16) {
                result.append(value)
                rest = rest.dropFirst(2)
            } else {
                result.append(byte)
            }
        }
        return result
    }
}

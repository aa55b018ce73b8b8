internal import SystemPackage

/// The files that Amazon's tools keep: `~/.aws/credentials` and `~/.aws/config`.
///
/// See https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html
struct ProfileFiles: Hashable, Sendable {
    var credentials: String?
    var config: String?
    /// Nil for `default`, which need not be there.
    var profile: String?

    /// The values of the profile; those of the file of credentials win.
    ///
    /// - Returns: nil if there is no such profile, and none was asked for.
    func values() throws(StorageError) -> [String: String]? {
        let name = profile ?? "default"
        var found: [String: String]?
        for (path, title) in [(config, name == "default" ? name : "profile \(name)"), (credentials, name)] {
            guard let path, let text = try Self.text(of: path) else { continue }
            guard let values = Self.section(title, of: text) else { continue }
            found = (found ?? [:]).merging(values) { $1 }
        }
        if found == nil, let profile {
            let paths = [credentials, config].compactMap(\.self).joined(separator: " or ")
            throw StorageError(.invalid, "There is no profile '\(profile)' in \(paths).")
        }
        return found
    }

    /// Nil if there is no such file.
    private static func text(of path: String) throws(StorageError) -> String? {
        do {
            return String(decoding: try SmallFile.read(path), as: UTF8.self)
        } catch {
            if [.noSuchFileOrDirectory, .notDirectory].contains(error) { return nil }
            throw StorageError(.invalid, "The file of profiles '\(path)' can't be read: \(error).")
        }
    }

    /// `name = value` of a section of an INI file; nil if it has no such section.
    static func section(_ title: String, of text: String) -> [String: String]? {
        var values: [String: String]?
        var isInside = false
        var isNested = false
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.drop { $0 == " " || $0 == "\t" }
            if words.isEmpty || words.first == "#" || words.first == ";" { continue }
            if words.first == "[" {
                let found = words.dropFirst().prefix { $0 != "]" }.split(whereSeparator: \.isWhitespace)
                isInside = found.joined(separator: " ") == title
                isNested = false
                if isInside { values = values ?? [:] }
            } else if isInside, let sign = words.firstIndex(of: "=") {
                // Indented lines below a name without a value are settings of that name.
                if isNested, words.startIndex != line.startIndex { continue }
                let value = withoutComment(words[words.index(after: sign)...])
                isNested = value.isEmpty
                values?[String(trimming: words[..<sign]).lowercased()] = value
            }
        }
        return values
    }

    /// A comment may follow a value, behind a space.
    private static func withoutComment(_ value: Substring) -> String {
        let end = [" #", " ;", "\t#", "\t;"].compactMap { value.firstRange(of: $0)?.lowerBound }.min()
        return String(trimming: value[..<(end ?? value.endIndex)])
    }
}

/// Reads files of configuration.
enum SmallFile {
    private static let maxBytes = 1 << 20

    /// - Throws: the system's error, and `fileTooLarge` for a file of more than 1 MiB.
    static func read(_ path: String) throws(Errno) -> [UInt8] {
        do {
            // A pipe that is named by mistake is not waited for.
            let file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
            return try file.closeAfter {
                var bytes: [UInt8] = []
                var buffer = [UInt8](repeating: 0, count: 16 << 10)
                while case let count = try buffer.withUnsafeMutableBytes({ try file.read(into: $0) }), count > 0 {
                    bytes += buffer[..<count]
                    guard bytes.count <= maxBytes else { throw Errno.fileTooLarge }
                }
                return bytes
            }
        } catch {
            throw error as? Errno ?? .ioError
        }
    }
}

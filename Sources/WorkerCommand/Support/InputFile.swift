import SystemPackage

/// Files that people name on the command line; `-` is standard input.
enum InputFile {
    /// - Parameter what: the file's role for error messages, such as `list of URLs`.
    static func open(_ path: String, as what: String) throws -> FileDescriptor {
        if path == "-" { return .standardInput }
        do {
            return try FileDescriptor.open(FilePath(path), .readOnly, options: .closeOnExec)
        } catch {
            throw SettingsError("The \(what) \(path) can't be read: \(error).")
        }
    }

    /// - Parameter what: the file's role for error messages, such as `manifest`.
    static func read(_ path: String, as what: String) throws -> [UInt8] {
        do {
            if path == "-" { return try read(.standardInput) }
            let file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
            return try file.closeAfter { try read(file) }
        } catch {
            throw SettingsError(
                "The \(what) \(path == "-" ? "on standard input" : path) can't be read: \(error).")
        }
    }

    static func text(_ path: String, as what: String) throws -> String {
        guard let text = String(validating: try read(path, as: what), as: UTF8.self), !text.contains("\0") else {
            throw SettingsError("The \(what) \(path == "-" ? "on standard input" : path) is not text in UTF-8.")
        }
        return text
    }

    private static func read(_ file: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let chunk = try [UInt8](unsafeUninitializedCapacity: 1 << 18) { buffer, count in
                count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
            }
            if chunk.isEmpty { return bytes }
            bytes += chunk
        }
    }
}

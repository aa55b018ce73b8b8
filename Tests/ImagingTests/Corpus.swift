import SystemPackage

#if canImport(Glibc)
    import Glibc
#endif

/// Images that others published, beside the checkout; tests that use them are skipped where they are missing.
enum Corpus {
    static let directory: FilePath = {
        let package = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        return package.removingLastComponent().appending("shared").appending("corpus")
    }()

    static var isThere: Bool { !files("samples").isEmpty }
    static let missing = "There is no ../shared/corpus beside the package."

    /// Files of a folder by name, in order.
    static func files(_ folder: String) -> [FilePath] {
        let path = directory.appending(folder)
        guard let stream = opendir(path.string) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix("."), name != "LICENSE", name != "README.md" { names.append(name) }
        }
        return names.sorted().map { path.appending($0) }
    }

    static func bytes(_ path: FilePath) throws -> [UInt8] {
        let file = try FileDescriptor.open(path, .readOnly)
        return try file.closeAfter { try readAll(file) }
    }
}

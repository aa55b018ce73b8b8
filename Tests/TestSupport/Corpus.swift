import Glibc
public import SystemPackage

/// Images that others published, beside the checkout; tests that use them are skipped where they are missing.
public enum Corpus {
    public static let directory: FilePath = {
        let package = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        return package.removingLastComponent().appending("shared").appending("corpus")
    }()

    public static var isThere: Bool { !files("samples").isEmpty }
    public static let missing = "There is no ../shared/corpus beside the package."

    /// Files of a folder by name, in order.
    public static func files(_ folder: String) -> [FilePath] {
        let path = directory.appending(FilePath(folder).components)
        return fileNames(in: path.string).filter { !["LICENSE", "README.md"].contains($0) }.sorted()
            .map { path.appending($0) }
    }

    public static func bytes(_ path: FilePath) throws -> [UInt8] {
        let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        return try file.closeAfter {
            let count = Int(try file.seek(offset: 0, from: .end))
            return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
                filled = try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }
}

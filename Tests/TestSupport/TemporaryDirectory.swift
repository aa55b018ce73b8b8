import Glibc
public import SystemPackage

/// Lends a new, empty directory and removes it afterwards with everything in it.
public func withTemporaryDirectory<R>(_ body: (FilePath) throws -> R) throws -> R {
    let path = try makeTemporaryDirectory()
    defer { removeRecursively(path) }
    return try body(path)
}

/// Lends a new, empty directory and removes it afterwards with everything in it.
public func withTemporaryDirectory<R>(_ body: (FilePath) async throws -> R) async throws -> R {
    let path = try makeTemporaryDirectory()
    defer { removeRecursively(path) }
    return try await body(path)
}

private func makeTemporaryDirectory() throws -> FilePath {
    let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/prefetch-test-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { buffer in
        buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
    }
    guard let made else { throw Errno(rawValue: errno) }
    return FilePath(made)
}

private func removeRecursively(_ path: FilePath) {
    // Best effort: what cannot be removed stays in the system's own temporary directory.
    _ = try? ChildProcess.run("rm", ["-rf", "--", path.string])
}

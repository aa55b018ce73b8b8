import Glibc
import SystemPackage
import TestSupport

/// So many zero bytes as the system's gzip packs them.
func gzip(of zeros: Int) throws -> [UInt8] {
    try withTemporaryDirectory { folder in
        let path = folder.appending("zeros")
        let file = try FileDescriptor.open(path, .readWrite, options: .create, permissions: .ownerReadWrite)
        guard ftruncate(file.rawValue, zeros) == 0 else { throw Errno(rawValue: errno) }
        try file.close()
        let status = try ChildProcess.run("gzip", ["-9", path.string])
        guard status == 0 else { throw Errno(rawValue: 1000 + status) }
        let packed = try FileDescriptor.open(folder.appending("zeros.gz"), .readOnly)
        return try packed.closeAfter {
            let size = try packed.seek(offset: 0, from: .end)
            return try [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
                count = try packed.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }
}

/// What this process has in memory now.
func residentBytes() -> Int { memoryPages(1) }

/// The address space of this process, with memory that was never written to.
func addressedBytes() -> Int { memoryPages(0) }

/// - Parameter column: of statm; see proc(5).
private func memoryPages(_ column: Int) -> Int {
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
    let words = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).split(
        separator: " ")
    return words.count > column ? (Int(words[column]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
}

internal import CDescriptorPassing
internal import ContentCache
internal import Glibc
internal import SystemPackage

/// Unnamed temporary files: the input of a command, or a variant before space is reserved for it.
///
/// If the cache has a limit they are in memory, since every file in the cache counts against the limit.
struct ScratchFiles: Sendable {
    let cache: ContentCache
    let isInMemory: Bool

    func make() throws(CacheError) -> BlobFile {
        guard isInMemory else { return try cache.makeFile() }
        let raw = pw_memory_file("scratch")
        guard raw >= 0 else { throw CacheError(.disk, "No file can be made in memory: \(Errno(rawValue: errno)).") }
        return BlobFile(owning: FileDescriptor(rawValue: raw))
    }
}

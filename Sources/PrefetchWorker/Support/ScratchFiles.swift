internal import CDescriptorPassing
internal import ContentCache
internal import Glibc
internal import SystemPackage

/// Unnamed temporary files: the input of a command, or a variant before it is counted.
///
/// Where the cache has a limit they are in memory, since whatever lies in the cache has to be counted.
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

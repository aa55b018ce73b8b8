internal import ContentCache
internal import Core
internal import Jobs
public import SystemPackage

/// A picture that a ``CacheWriter`` stores for a URL.
public struct NewPicture: Sendable {
    enum Content: Sendable {
        case path(String)
        case bytes([UInt8])
        /// Read to its end, and not closed.
        case stream(FileDescriptor)
        case opened(BlobFile)
        /// A file that was found and can't be read.
        case refused(Failure)
    }

    /// The URL, as jobs name it.
    public let url: String
    /// How reports call the file, such as its path.
    public let name: String
    /// Nil for the source of the URL. Otherwise the name of a variant, or a whole variant such as
    /// `thumb=320x240,webp`.
    public var variant: String?
    let content: Content

    init(_ content: Content, url: String, name: String) {
        (self.content, self.url, self.name) = (content, url, name)
    }

    public init(path: String, url: String) { self.init(.path(path), url: url, name: path) }

    public init(bytes: [UInt8], url: String) { self.init(.bytes(bytes), url: url, name: "memory") }

    /// - Parameter descriptor: a file, a pipe or a socket, read to its end. The caller closes it.
    public init(reading descriptor: FileDescriptor, url: String) {
        self.init(.stream(descriptor), url: url, name: "-")
    }
}

/// A picture that is in the cache now.
public struct CachedPicture: Sendable, Hashable, Encodable {
    public enum Change: String, Sendable, Encodable {
        /// The cache had no such picture.
        case stored
        /// The cache had another one.
        case replaced
        /// The cache had the same bytes already.
        case cached
    }

    public var url: String
    /// The variant's name, or `original`.
    public let variant: String
    public let change: Change
    /// SHA-256 of the bytes, lowercase hexadecimal.
    public let blob: String
    public let format: String
    /// Pixels of the upright picture; nil if they were not decoded.
    public let width: Int?
    public let height: Int?
    public let size: Int64
    /// The file's path, absolute.
    public let path: String
}

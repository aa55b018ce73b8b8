public import ContentCache
internal import Core
internal import Glibc
internal import ObjectStorage
internal import SystemPackage

/// How a cache in a bucket is used. Credentials, endpoint and region come from the environment and the profile files
/// that Amazon's tools read.
public struct BucketSettings: Sendable {
    /// The folder that keeps blobs in use on this machine.
    public var folder = "cache"
    /// Bytes that the folder keeps, approximately.
    public var folderBytes: Int64 = 10 << 30
    /// `https://s3.example.com`; nil for the environment's, or Amazon's own.
    public var endpoint: String?
    /// Nil for the environment's, or us-east-1.
    public var region: String?
    /// Whether the bucket's name is in the path of URLs; nil for the usual: in the host's name only for Amazon.
    public var isPathStyle: Bool?
    /// `AES256` or `aws:kms`; nil leaves it to the bucket.
    public var encryption: String?
    /// The id of the key for `aws:kms`.
    public var encryptionKey: String?
    /// `STANDARD_IA`, for example; nil leaves it to the bucket.
    public var storageClass: String?

    public init() {}
}

/// A cache's place, as `--cache` names it: a folder, or a bucket with a folder in front of it.
public struct CacheLocation: Sendable {
    /// A folder's path, or `s3://bucket/prefix`.
    public let name: String
    private let settings: BucketSettings

    public init(_ name: String, _ settings: BucketSettings = BucketSettings()) {
        self.name = name
        self.settings = settings
    }

    public var isBucket: Bool { name.hasPrefix(BucketLocation.scheme) }

    /// The folder on this machine.
    public var folder: String { isBucket ? settings.folder : name }

    /// Opens the cache. Blocks; for a bucket no request is sent yet.
    ///
    /// - Parameter isNew: whether to create a missing cache. The folder in front of a bucket is always created.
    public func open(isNew: Bool = true, syncs: Bool = true) throws -> ContentCache {
        guard isBucket else { return try ContentCache(directory: FilePath(name), isNew: isNew, syncs: syncs) }
        return try ContentCache(directory: FilePath(settings.folder), backing: backing())
    }

    /// Makes the bucket if it is missing. Blocks.
    public func makeBucketIfMissing() throws {
        if isBucket { try backing().makeIfMissing() }
    }

    /// The bucket, without a folder.
    func backing() throws -> BucketBlobs {
        let environment = { (name: String) in getenv(name).map { String(cString: $0) } }
        let credentials = CredentialSettings(environment: environment)
        var options = BucketOptions(environment: environment)
        // The worker itself pauses and tests a bucket that can't be reached.
        options.tries = 4
        options.encryption = settings.encryption
        options.encryptionKey = settings.encryptionKey
        options.storageClass = settings.storageClass
        do throws(StorageError) {
            let server = try BucketLocation.Server(
                settings: credentials, endpoint: settings.endpoint, region: settings.region,
                isPathStyle: settings.isPathStyle)
            let location = try BucketLocation(name, server: server)
            var hurried = options
            hurried.tries = 2
            hurried.connectTimeout = 3_000
            hurried.silenceTimeout = 4
            hurried.totalTimeout = 8_000
            return BucketBlobs(
                Bucket(location, credentials: credentials, options: options),
                deletions: Bucket(location, credentials: credentials, options: hurried))
        } catch {
            throw WorkerError(.usage, error.message)
        }
    }
}

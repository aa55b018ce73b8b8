import PrefetchWorker

/// Settings of a cache in a bucket. They are not flags: every command that opens the cache needs the same values.
enum S3Settings {
    private static let endpoint = Setting.text(
        "s3-endpoint", nil, "url", "The server of a cache in a bucket; else AWS_ENDPOINT_URL, or Amazon's.")
    private static let region = Setting.text(
        "s3-region", nil, "region", "The region of a cache in a bucket; else AWS_REGION, or us-east-1.")
    private enum Encryption: String, CaseIterable, Sendable {
        case own = "AES256"
        case keys = "aws:kms"
        case twoLayers = "aws:kms:dsse"
    }

    private static let encryption = Setting<Encryption>.choice(
        "s3-encryption", nil, "Server-side encryption of stored objects: AES256, aws:kms or aws:kms:dsse.",
        placeholder: "kind")
    private static let encryptionKey = Setting.text(
        "s3-encryption-key", nil, "id", "The id of the key for aws:kms.")
    private static let storageClass = Setting.text(
        "s3-storage-class", nil, "class", "The storage class of stored objects, such as STANDARD_IA.")
    private enum Addressing: String, CaseIterable, Sendable {
        case path, host
    }

    private static let addressing = Setting<Addressing>.choice(
        "s3-addressing", nil, "Where URLs have the bucket's name: path or host; else in the host for Amazon only.",
        placeholder: "place")
    private static let folderSize = Setting.bytes(
        "cache-folder-size", "10GiB", "Bytes that the folder in front of a bucket keeps, approximately.")
    static let all: [any NamedSetting] = [
        endpoint, region, encryption, encryptionKey, storageClass, addressing, folderSize,
    ]

    /// - Parameter folder: the folder in front of the bucket.
    static func settings(folder: String, _ settings: Settings) throws(SettingsError) -> BucketSettings {
        var bucket = BucketSettings()
        bucket.folder = folder
        bucket.folderBytes = try settings.value(folderSize, nil)
        bucket.endpoint = try settings.optional(endpoint, nil)
        bucket.region = try settings.optional(region, nil)
        bucket.encryption = try settings.optional(encryption, nil)?.rawValue
        bucket.encryptionKey = try settings.optional(encryptionKey, nil)
        bucket.storageClass = try settings.optional(storageClass, nil)
        bucket.isPathStyle = try settings.optional(addressing, nil).map { $0 == .path }
        return bucket
    }
}

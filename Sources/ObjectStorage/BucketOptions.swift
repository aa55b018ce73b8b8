/// How a bucket is used.
public struct BucketOptions: Hashable, Sendable {
    /// Requests at once; further ones wait.
    public var connections = 16
    /// Maximum tries of a request after temporary errors, including the first.
    public var tries = 6
    /// Milliseconds between two tries.
    public var shortestPause = 50
    public var longestPause = 5_000
    /// Maximum milliseconds to connect.
    public var connectTimeout = 5_000
    /// Idle timeout in seconds: a try ends after this long below 1 KiB/s.
    public var silenceTimeout = 30
    /// Maximum milliseconds of one try.
    public var totalTimeout = 3_600_000
    /// `AES256` or `aws:kms`, for objects that are stored; nil leaves it to the bucket.
    public var encryption: String?
    /// The id of a key for `aws:kms`.
    public var encryptionKey: String?
    /// `STANDARD_IA`, for example; nil leaves it to the bucket.
    public var storageClass: String?
    /// A file of certificates of authorities in PEM, instead of the system's.
    public var authorities: String?
    /// The user agent of requests.
    public var agent = "PrefetchWorker"

    public init() {}

    /// With the authorities of AWS_CA_BUNDLE.
    ///
    /// - Parameter value: the value of a variable of the environment.
    public init(environment value: (String) -> String?) {
        authorities = value("AWS_CA_BUNDLE").flatMap { $0.isEmpty ? nil : $0 }
    }

    var policy: RequestRetries {
        RequestRetries(tries: tries, shortestPause: shortestPause, longestPause: longestPause)
    }

    var timeouts: HTTPRequest.Timeouts {
        HTTPRequest.Timeouts(
            connect: min(max(1, connectTimeout), 86_400_000), silence: min(max(1, silenceTimeout), 86_400),
            whole: min(max(1, totalTimeout), 86_400_000))
    }

    /// The headers that go with objects that are stored.
    var storedHeaders: [String: String] {
        [
            "x-amz-server-side-encryption": encryption,
            "x-amz-server-side-encryption-aws-kms-key-id": encryptionKey,
            "x-amz-storage-class": storageClass,
        ].compactMapValues { $0.flatMap { $0.isEmpty ? nil : $0 } }
    }
}

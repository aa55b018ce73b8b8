internal import Core

/// A bucket, the prefix of our objects in it, and the server that has it.
public struct BucketLocation: Hashable, Sendable, CustomStringConvertible {
    public let bucket: String
    /// Before every key; empty, or with a slash at its end.
    public let prefix: String
    public let region: String
    /// Whether the bucket stands in the path, and not in the host's name.
    public let isPathStyle: Bool
    /// Whether it is on Amazon's own servers.
    let isAmazons: Bool
    /// With the bucket before the host, unless it stands in the path.
    let address: HTTPAddress

    public static let scheme = "s3://"

    /// - Parameter text: `s3://BUCKET` or `s3://BUCKET/PREFIX`, nothing of it percent-encoded.
    /// - Throws: `invalid`, with what is wrong.
    public init(_ text: String, server: Server = Server()) throws(StorageError) {
        guard text.hasPrefix(Self.scheme) else {
            throw StorageError(.invalid, "A bucket is written s3://BUCKET or s3://BUCKET/PREFIX.")
        }
        let parts = text.dropFirst(Self.scheme.count).split(separator: "/", omittingEmptySubsequences: false)
        let bucket = String(parts.first ?? "")
        guard Self.isName(bucket) else {
            // Users may write access keys before the name, as in s3://ID:SECRET@BUCKET. A message may be logged, so it
            // must not contain them.
            let shown = text.contains("@") ? "The bucket" : "'\(bucket)'"
            throw StorageError(
                .invalid,
                "\(shown) is no bucket's name: that has 3 to 63 lowercase letters, digits, dots and hyphens.")
        }
        let path = parts.dropFirst().filter { !$0.isEmpty }
        guard path.joined(separator: "/").utf8.count <= Self.maxPrefix,
            path.allSatisfy({ $0 != "." && $0 != ".." }), !text.contains(where: { "?#".contains($0) }),
            Self.isPrintable(text)
        else {
            throw StorageError(
                .invalid,
                """
                The prefix of s3://\(bucket) has more than \(Self.maxPrefix) bytes, control characters, '?', '#', or a \
                part '.' or '..'.
                """)
        }
        guard AmazonHost.isRegion(server.region) else {
            throw StorageError(
                .invalid, "The region of a bucket has letters, digits and hyphens, as 'eu-central-1' has.")
        }
        let endpoint = server.endpoint ?? AmazonHost.origin(service: "s3", region: server.region)
        // A copied address often ends with a slash.
        guard let address = HTTPAddress(endpoint.hasSuffix("/") ? endpoint.dropLast() : endpoint[...]) else {
            throw StorageError(
                .invalid,
                "The endpoint of a bucket is written https://HOST or http://HOST:PORT, without a path and a user.")
        }
        self.bucket = bucket
        prefix = path.map { $0 + "/" }.joined()
        region = server.region
        isAmazons = server.endpoint == nil
        // A certificate for *.HOST doesn't cover a name with dots, and an IP address can't have a name before it.
        isPathStyle =
            server.isPathStyle ?? (server.endpoint != nil) || bucket.contains(".") || address.isNumeric
        self.address = isPathStyle ? address : address.adding(label: bucket)
    }

    public var description: String { "\(Self.scheme)\(bucket)\(prefix.isEmpty ? "" : "/" + prefix.dropLast())" }

    /// The path of a key, or of the bucket itself, encoded as it is signed and sent.
    ///
    /// - Throws: `invalid` for a key that servers or proxies may take for another one.
    func path(of key: String?) throws(StorageError) -> String {
        let start = isPathStyle ? "/\(bucket)" : ""
        guard let key else { return start.isEmpty ? "/" : start }
        return "\(start)/\(PercentEncoding.path(try full(key)))"
    }

    /// The key as the bucket has it.
    func full(_ key: String) throws(StorageError) -> String {
        let full = prefix + key
        let parts = full.split(separator: "/", omittingEmptySubsequences: false)
        guard !key.isEmpty, full.utf8.count <= Self.maxKey, Self.isPrintable(full),
            parts.allSatisfy({ $0 != "." && $0 != ".." })
        else {
            throw StorageError(
                .invalid,
                "A key of \(self) has 1 to \(Self.maxKey) bytes, no control characters, and no part '.' or '..'.")
        }
        return full
    }

    /// Amazon's limit, in bytes.
    private static let maxKey = 1_024
    private static let maxPrefix = 512

    /// Whether XML can hold it, and terminals can show it.
    private static func isPrintable(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 && $0.value != 0xFFFE && $0.value != 0xFFFF }
    }

    /// See https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    private static func isName(_ name: String) -> Bool {
        let isWord: (UInt8) -> Bool = { ($0 &- 48) < 10 || ($0 &- 97) < 26 }
        guard let first = name.utf8.first, let last = name.utf8.last, (3...63).contains(name.utf8.count) else {
            return false
        }
        return isWord(first) && isWord(last) && name.utf8.allSatisfy { isWord($0) || $0 == 45 || $0 == 46 }
            && !name.contains("..")
    }
}

extension BucketLocation {
    /// The server that has a bucket.
    public struct Server: Hashable, Sendable {
        /// `https://s3.example.com`, `http://127.0.0.1:9000` or `http://[::1]:9000`; nil for Amazon's own.
        public var endpoint: String?
        public var region: String
        /// Nil for the default: in the path, as most servers have it; in the host's name on Amazon's servers.
        public var isPathStyle: Bool?

        public static let usualRegion = "us-east-1"

        public init(endpoint: String? = nil, region: String = Server.usualRegion, isPathStyle: Bool? = nil) {
            self.endpoint = endpoint
            self.region = region
            self.isPathStyle = isPathStyle
        }

        /// The server that the settings' environment or profile names, where an option doesn't.
        ///
        /// - Throws: `invalid` if a file of profiles can't be read.
        public init(
            settings: CredentialSettings, endpoint: String? = nil, region: String? = nil, isPathStyle: Bool? = nil,
        ) throws(StorageError) {
            let profile = try settings.profiles.values()
            self.init(
                endpoint: endpoint ?? settings.endpoint ?? profile?["endpoint_url"],
                region: region ?? settings.region ?? profile?["region"] ?? Self.usualRegion, isPathStyle: isPathStyle)
        }
    }
}

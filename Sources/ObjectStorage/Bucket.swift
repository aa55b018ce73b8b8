public import Core
internal import FoundationEssentials
internal import Hashing
public import SystemPackage

/// The objects under one prefix of an S3 bucket.
///
/// Keys are given and returned without the prefix. Each call signs its requests with credentials that do not
/// expire soon, and repeats a request where that may help: without a connection, and after 5xx, `SlowDown` and 429. A
/// call ends soon after its task is cancelled.
public final class Bucket: Sendable {
    public let location: BucketLocation
    private let options: BucketOptions
    let requests: BucketRequests

    public convenience init(
        _ location: BucketLocation, credentials: CredentialSettings, options: BucketOptions = BucketOptions(),
    ) {
        self.init(location, credentials: credentials, options: options, now: { .current })
    }

    /// - Parameter now: the time that requests are signed with.
    init(
        _ location: BucketLocation, credentials: CredentialSettings, options: BucketOptions,
        now: @escaping @Sendable () -> WallTime,
    ) {
        self.location = location
        self.options = options
        requests = BucketRequests(location, credentials: credentials, options: options, now: now)
    }

    /// The requests since this object was made.
    public var counts: BucketCounts { requests.counts }

    /// An object's key, size and time of change.
    public struct Info: Hashable, Sendable {
        public let key: String
        /// Bytes.
        public let size: Int64
        /// By the server's clock, to the second; nil if the server doesn't say.
        public let modified: WallTime?
    }

    /// Stores the first bytes of a file, durably once this returns. An object of that key is replaced.
    ///
    /// The file's offset is neither used nor moved.
    ///
    /// - Parameters:
    ///   - size: how many bytes, 5 GiB at most.
    ///   - hash: of the bytes; the server refuses a body with another hash, so that damaged bytes are not stored.
    public func put(
        _ key: String, _ file: FileDescriptor, size: Int64, hash: BlobHash, type: String = "application/octet-stream",
    ) async throws(StorageError) {
        guard (0...Self.maxSize).contains(size) else {
            throw StorageError(.invalid, "An object has 0 to \(Self.maxSize) bytes, and not \(size).")
        }
        let purpose = Self.purpose(ofStoring: key)
        let reply = try await requests.send(
            BucketRequests.Call(
                method: "PUT", key: key, headers: try headers(type: type, hash), body: .file(file, size),
                payload: hash.hex, purpose: purpose))
        try requests.check(reply.answer, purpose)
    }

    /// Stores a small object. An object of that key is replaced.
    public func put(_ key: String, _ bytes: [UInt8], type: String = "text/plain") async throws(StorageError) {
        try requests.check(await small(key, bytes, type: type).answer, Self.purpose(ofStoring: key))
    }

    /// Stores a small object unless there is one with its key. Of several callers at once, one stores it.
    ///
    /// If an answer is lost, the stored bytes are compared with these. So each caller should store different bytes.
    ///
    /// - Returns: whether it was stored.
    public func putIfAbsent(
        _ key: String, _ bytes: [UInt8], type: String = "text/plain",
    ) async throws(StorageError) -> Bool {
        let reply = try await small(key, bytes, type: type, further: ["if-none-match": "*"])
        if reply.answer.status == 412 {
            guard reply.isRepeated else { return false }
            return try await has(key, bytes)
        }
        try requests.check(reply.answer, Self.purpose(ofStoring: key))
        return true
    }

    private static func purpose(ofStoring key: String) -> String { "store \(key)" }

    private func small(
        _ key: String, _ bytes: [UInt8], type: String, further: [String: String] = [:],
    ) async throws(StorageError) -> BucketRequests.Reply {
        let hash = BlobHash(digest: SHA256.digest(of: bytes))
        return try await requests.send(
            BucketRequests.Call(
                method: "PUT", key: key, headers: try headers(type: type, hash).merging(further) { $1 },
                body: .bytes(bytes), payload: hash.hex, purpose: Self.purpose(ofStoring: key)))
    }

    private func has(_ key: String, _ bytes: [UInt8]) async throws(StorageError) -> Bool {
        do {
            return try await self.bytes(of: key, maxBytes: Int64(bytes.count)) == bytes
        } catch {
            guard error.code == .tooLarge else { throw error }
            return false
        }
    }

    /// Replaces a file's content by an object's bytes. The file's offset is 0 afterwards, and the file is empty after
    /// an error.
    ///
    /// - Parameters:
    ///   - file: open for writing, and not in use elsewhere.
    ///   - hash: of the bytes. If received bytes have another hash, the call tries once more, and then throws
    ///     `wrongBytes`.
    /// - Returns: how many bytes; nil if there is no such object.
    public func get(
        _ key: String, into file: FileDescriptor, maxBytes: Int64, hash: BlobHash? = nil,
    ) async throws(StorageError) -> Int64? {
        let purpose = "read \(key)"
        do {
            let answer = try await requests.send(
                BucketRequests.Call(
                    key: key, output: file, expectedHash: hash?.hex, maxBytes: maxBytes, purpose: purpose)
            ).answer
            if isAbsent(answer) { return nil }
            try requests.check(answer, purpose)
            return answer.size
        } catch {
            // Best effort: the caller throws the file away, and the error says why.
            try? file.resize(to: 0)
            throw error
        }
    }

    /// A small object's bytes; nil if there is none.
    public func bytes(of key: String, maxBytes: Int64 = 1 << 20) async throws(StorageError) -> [UInt8]? {
        let purpose = "read \(key)"
        let answer = try await requests.send(BucketRequests.Call(key: key, maxBytes: maxBytes, purpose: purpose)).answer
        if isAbsent(answer) { return nil }
        try requests.check(answer, purpose)
        return answer.body
    }

    /// - Returns: nil if there is no such object, or no such bucket; the answer to a HEAD has no body that says which.
    public func info(of key: String) async throws(StorageError) -> Info? {
        let purpose = "look at \(key)"
        let answer = try await requests.send(BucketRequests.Call(method: "HEAD", key: key, purpose: purpose)).answer
        if answer.status == 404 { return nil }
        try requests.check(answer, purpose)
        guard let size = answer.headers["content-length"].flatMap({ Int64($0) }), size >= 0 else {
            throw StorageError(.refused, "\(location) can't \(purpose): the answer has no length.")
        }
        return Info(
            key: key, size: size, modified: answer.headers["last-modified"].flatMap { WallTime(httpDate: $0) })
    }

    /// A URL with which anyone may read the object. It expires earlier if the credentials expire earlier.
    ///
    /// - Parameter seconds: how long, from now; seven days at most.
    public func presignedURL(of key: String, seconds: Int) async throws(StorageError) -> String {
        let path = try location.path(of: key)
        let parts = Signature.Parts(
            method: "GET", host: location.address.authority, path: path, payload: Signature.unsignedPayload)
        let query = try await requests.signature().presignedQuery(parts, seconds: seconds)
        return "\(location.address.origin)\(path)?\(query)"
    }

    /// S3's maximum for one PUT, in bytes.
    private static let maxSize: Int64 = 5 << 30

    private func headers(type: String, _ hash: BlobHash) throws(StorageError) -> [String: String] {
        var headers = options.storedHeaders
        headers["content-type"] = type
        headers["x-amz-checksum-sha256"] = Self.checksum(hash)
        return headers
    }

    /// As headers have it: the digest in Base64.
    static func checksum(_ hash: BlobHash) -> String {
        let digits = hash.hex.utf8.map { $0 < 58 ? $0 - 48 : $0 - 87 }
        let bytes = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        return Data(bytes).base64EncodedString()
    }

    /// Only a 404 with S3's own code says that there is no object; a proxy may answer 404 too.
    private func isAbsent(_ answer: HTTPAnswer) -> Bool {
        answer.status == 404 && XMLReader.read(answer.body)?["Code"] == "NoSuchKey"
    }
}

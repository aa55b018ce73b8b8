internal import Core
internal import Synchronization
internal import SystemPackage

/// Signs and sends the requests to one bucket, repeats those that may succeed later, and turns bad answers into errors.
final class BucketRequests: Sendable {
    let location: BucketLocation
    private let options: BucketOptions
    private let client: HTTPClient
    private let keeper: CredentialKeeper
    private let now: @Sendable () -> WallTime
    private let tally = Mutex(BucketCounts())

    /// A request before it is signed.
    struct Call {
        var method = "GET"
        /// Nil for the bucket itself.
        var key: String?
        var query: [(name: String, value: String)] = []
        /// Names in lowercase.
        var headers: [String: String] = [:]
        var body = HTTPRequest.Body.none
        /// The SHA-256 of the body.
        var payload = BucketRequests.emptyHash
        /// The file for a good answer's body, and the SHA-256 that the body must have.
        var output: FileDescriptor?
        var expectedHash: String?
        var maxBytes: Int64 = Int64(XMLReader.maxBytes)
        /// What the request does, as messages say it after "can't": `store KEY`.
        var purpose: String
    }

    struct Reply {
        let answer: HTTPAnswer
        /// Whether a try before this one may have been carried out, though there was no answer.
        let isRepeated: Bool
    }

    /// The SHA-256 of no bytes.
    static let emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

    init(
        _ location: BucketLocation, credentials: CredentialSettings, options: BucketOptions,
        now: @escaping @Sendable () -> WallTime,
    ) {
        self.location = location
        self.options = options
        self.now = now
        client = HTTPClient(
            HTTPClient.Settings(
                agent: options.agent, connections: options.connections, authorities: options.authorities))
        keeper = CredentialKeeper(
            CredentialSources(settings: credentials, region: location.region, client: client), now: now)
    }

    var counts: BucketCounts { tally.withLock { $0 } }

    func signature() async throws(StorageError) -> Signature {
        Signature(credentials: try await keeper.credentials(), region: location.region, time: now())
    }

    /// The results of a call's tries so far.
    private struct Progress {
        /// Of the error after the last try.
        var code = StorageError.Code.unreachable
        /// Whether a try may have been carried out, though there was no answer.
        var isUncertain = false
        /// Credentials that the server says have run out.
        var rejected: Credentials?
    }

    /// - Returns: an answer that no further try changes.
    func send(_ call: Call) async throws(StorageError) -> Reply {
        for value in Array(call.headers.values) + [options.agent]
        where !value.utf8.allSatisfy({ (32..<127).contains($0) }) {
            throw StorageError(
                .invalid, "\(location) can't \(call.purpose): a header has characters that are not allowed.")
        }
        let parts = Signature.Parts(
            method: call.method, host: location.address.authority, path: try location.path(of: call.key),
            query: call.query, headers: call.headers, payload: call.payload)
        var progress = Progress()
        let outcome = try await options.policy.run { () async throws(StorageError) -> RequestRetries.Attempt<Reply> in
            try await attempt(call, parts, &progress)
        }
        switch outcome {
        case .done(let reply): return reply
        case .gaveUp(let reason): throw StorageError(progress.code, "\(location) can't \(call.purpose): \(reason).")
        }
    }

    private func attempt(
        _ call: Call, _ parts: Signature.Parts, _ progress: inout Progress,
    ) async throws(StorageError) -> RequestRetries.Attempt<Reply> {
        let signature = try await signature()
        if signature.credentials == progress.rejected {
            throw StorageError(.denied, "\(location) can't \(call.purpose): the credentials have run out.")
        }
        let answer: HTTPAnswer
        do throws(ExchangeFailure) {
            answer = try await client.answer(to: request(call, parts, signature))
            tally.withLock { $0.count(call, answer) }
        } catch {
            tally.withLock { $0.count(call, nil) }
            // Bytes are rarely damaged on their way. If they are wrong twice in a row, the stored object is damaged.
            let isFinal = !Self.isTransient(error) || (error.kind == .wrongBytes && progress.code == .wrongBytes)
            let thrown = storageError(error, call)
            if isFinal { throw thrown }
            (progress.isUncertain, progress.code) = (true, thrown.code)
            return .again(reason: error.message, after: nil)
        }
        if Self.isExpiry(answer) {
            (progress.rejected, progress.code) = (signature.credentials, .denied)
            keeper.forget(signature.credentials)
            return .again(reason: "the credentials have run out", after: nil)
        }
        guard let reason = Self.transient(answer) else {
            return .done(Reply(answer: answer, isRepeated: progress.isUncertain))
        }
        progress.isUncertain = progress.isUncertain || answer.status >= 500
        progress.code = .unreachable
        return .again(reason: reason, after: Self.announcedPause(answer))
    }

    private func request(_ call: Call, _ parts: Signature.Parts, _ signature: Signature) -> HTTPRequest {
        let query = Signature.encoded(call.query)
        var request = HTTPRequest(
            method: call.method, url: "\(location.address.origin)\(parts.path)\(query.isEmpty ? "" : "?" + query)",
            headers: signature.headers(parts), body: call.body)
        (request.output, request.expectedHash, request.maxBytes) = (call.output, call.expectedHash, call.maxBytes)
        request.timeouts = options.timeouts
        return request
    }

    /// Whether another try may succeed.
    private static func isTransient(_ failure: ExchangeFailure) -> Bool {
        switch failure.kind {
        case .transient, .wrongBytes: true
        case .certificate, .tooLarge, .file, .cancelled, .unusable: false
        }
    }

    private func storageError(_ failure: ExchangeFailure, _ call: Call) -> StorageError {
        let text = "\(location) can't \(call.purpose): \(failure.message)."
        switch failure.kind {
        case .transient: return StorageError(.unreachable, text)
        case .wrongBytes: return StorageError(.wrongBytes, text)
        case .cancelled: return StorageError(.cancelled, text)
        case .tooLarge: return StorageError(.tooLarge, text)
        case .file(let errno): return StorageError(.file, text, errno: errno)
        case .certificate:
            return StorageError(.refused, "\(text) AWS_CA_BUNDLE names a file of other authorities to trust.")
        case .unusable: return StorageError(.refused, text)
        }
    }

    // MARK: - Answers

    /// Why another try may get another answer; nil if it will not.
    private static func transient(_ answer: HTTPAnswer) -> String? {
        let code = answer.isGood ? nil : XMLReader.read(answer.body)?["Code"]
        let isTransient =
            switch answer.status {
            case 429: true
            // A server that does not have the call, or the version of HTTP, will not have them later.
            case 501, 505: false
            case 500...599: true
            // A slow upload, bytes that broke on the way, and two writers at once.
            case 400: ["RequestTimeout", "IncompleteBody"].contains(code)
            case 409: ["OperationAborted", "ConditionalRequestConflict"].contains(code)
            case 408: true
            default: false
            }
        return isTransient ? "it answered \(answer.status)\(code.map { " (\($0))" } ?? "")" : nil
    }

    private static func isExpiry(_ answer: HTTPAnswer) -> Bool {
        guard [400, 401, 403].contains(answer.status), let code = XMLReader.read(answer.body)?["Code"] else {
            return false
        }
        return ["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"].contains(code)
    }

    /// Milliseconds.
    private static func announcedPause(_ answer: HTTPAnswer) -> Int? {
        answer.headers["retry-after"].flatMap { Int($0) }.map { min(max(0, $0), 86_400) * 1_000 }
    }

    /// - Throws: the error for an answer that is not 2xx.
    func check(_ answer: HTTPAnswer, _ purpose: String) throws(StorageError) {
        guard !answer.isGood else { return }
        let body = XMLReader.read(answer.body)
        let code = body?["Code"]
        if let other = region(of: answer, body) {
            throw StorageError(
                .wrongRegion,
                """
                \(location) can't \(purpose): the bucket is in the region '\(other)', and was looked for in \
                '\(location.region)'.
                """)
        }
        var reason = code ?? "no reason given"
        if let message = body?["Message"], !message.isEmpty { reason += ": \(message.prefix(200))" }
        if let place = answer.headers["location"], (300..<400).contains(answer.status) {
            reason += "; it points to \(place.prefix { $0 != "?" }.prefix(200))"
        }
        let text = "\(location) can't \(purpose): it answered \(answer.status) (\(reason))."
        switch (answer.status, code) {
        case (_, "NoSuchBucket"): throw StorageError(.noBucket, "There is no bucket '\(location.bucket)'. \(text)")
        case (_, "XAmzContentSHA256Mismatch"), (_, "BadDigest"), (_, "InvalidDigest"),
            (_, "XAmzContentChecksumMismatch"):
            throw StorageError(.wrongBytes, text)
        case (_, "RequestTimeTooSkewed"):
            throw StorageError(.denied, "\(text) This machine's clock differs from the server's by too much.")
        case (401, _), (403, _):
            throw StorageError(.denied, "\(text) Check the credentials, and what they allow on this bucket.")
        default: throw StorageError(.refused, text)
        }
    }

    /// The bucket's region by the server's answer, if it differs from the configured one.
    private func region(of answer: HTTPAnswer, _ body: XMLElement?) -> String? {
        guard (300..<500).contains(answer.status) else { return nil }
        let isAboutRegion =
            (300..<400).contains(answer.status) || body?["Code"] == "AuthorizationHeaderMalformed"
            || answer.status == 400
        guard isAboutRegion, let region = answer.headers["x-amz-bucket-region"] ?? body?["Region"],
            AmazonHost.isRegion(region), region != location.region
        else { return nil }
        return region
    }
}

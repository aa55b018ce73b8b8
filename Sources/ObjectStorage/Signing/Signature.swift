internal import Core
internal import Glibc
internal import Hashing

/// AWS Signature 4 for S3.
///
/// See https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
struct Signature {
    let credentials: Credentials
    let region: String
    let time: WallTime

    /// A request's parts as they are signed.
    struct Parts {
        var method: String
        /// As it is sent: with the port, unless it is the scheme's own.
        var host: String
        /// Encoded.
        var path: String
        /// Names and values as they are, in any order.
        var query: [(name: String, value: String)] = []
        /// Names in lowercase; all of them are signed.
        var headers: [String: String] = [:]
        /// The SHA-256 of the body in hexadecimal digits, or ``unsignedPayload``.
        var payload: String
    }

    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    /// Seconds for which a presigned URL may be valid: seven days.
    static let maxLife = 604_800

    /// The header lines of a request, `Host` and `Authorization` included.
    func headers(_ parts: Parts) -> [String] {
        var parts = parts
        parts.headers["x-amz-content-sha256"] = parts.payload
        parts.headers["x-amz-date"] = stamp
        if let token = credentials.token { parts.headers["x-amz-security-token"] = token.value }
        var lines = parts.headers
        lines["host"] = parts.host
        lines["authorization"] = [
            "\(Self.algorithm) Credential=\(credentials.keyID)/\(scope)", "SignedHeaders=\(signedNames(parts))",
            "Signature=\(signature(parts))",
        ].joined(separator: ",")
        return lines.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }
    }

    /// The query of a URL that is valid for this many seconds, for any sender.
    ///
    /// See https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
    func presignedQuery(_ parts: Parts, seconds: Int) -> String {
        var parts = parts
        parts.payload = Self.unsignedPayload
        parts.query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", "\(credentials.keyID)/\(scope)"),
            ("X-Amz-Date", stamp), ("X-Amz-Expires", "\(min(max(1, seconds), Self.maxLife))"),
            ("X-Amz-SignedHeaders", signedNames(parts)),
        ]
        if let token = credentials.token { parts.query.append(("X-Amz-Security-Token", token.value)) }
        return "\(Self.encoded(parts.query))&X-Amz-Signature=\(signature(parts))"
    }

    /// The query as it is signed and sent: encoded, then sorted by names and values.
    static func encoded(_ query: [(name: String, value: String)]) -> String {
        query.map { (PercentEncoding.query($0.name), PercentEncoding.query($0.value)) }
            .sorted { $0 < $1 }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    private static let algorithm = "AWS4-HMAC-SHA256"

    private func signature(_ parts: Parts) -> String {
        let request = String(hexadecimal: SHA256.digest(of: Array(canonical(parts).utf8)))
        let text = [Self.algorithm, stamp, scope, request].joined(separator: "\n")
        var key = Array("AWS4\(credentials.secret.value)".utf8)
        for part in [day, region, "s3", "aws4_request", text] {
            key = SHA256.authenticationCode(of: Array(part.utf8), key: key)
        }
        return String(hexadecimal: key)
    }

    private func canonical(_ parts: Parts) -> String {
        var headers = parts.headers
        headers["host"] = parts.host
        let lines = headers.sorted { $0.key < $1.key }.map { "\($0.key):\(Self.trimmed($0.value))\n" }.joined()
        return [parts.method, parts.path, Self.encoded(parts.query), lines, signedNames(parts), parts.payload]
            .joined(separator: "\n")
    }

    private func signedNames(_ parts: Parts) -> String {
        Set(parts.headers.keys).union(["host"]).sorted().joined(separator: ";")
    }

    /// Spaces in a row count as one, and those around a value as none.
    private static func trimmed(_ value: String) -> String { value.split(separator: " ").joined(separator: " ") }

    private var scope: String { "\(day)/\(region)/s3/aws4_request" }

    private var day: String { String(stamp.prefix(8)) }

    /// `20261126T093000Z`.
    private var stamp: String {
        var seconds = time_t(time.milliseconds / 1_000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(Int(parts.tm_year) + 1_900)\(two(parts.tm_mon + 1))\(two(parts.tm_mday))"
            + "T\(two(parts.tm_hour))\(two(parts.tm_min))\(two(parts.tm_sec))Z"
    }
}

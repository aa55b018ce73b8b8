internal import FoundationEssentials

/// How a worker sends the notices of jobs that ended.
public struct NoticeOptions: Sendable {
    /// Signs the notices that are sent to URLs; nil for none.
    public var secret: NoticeSecret?
    /// The program that gets the notices of jobs whose `notify` is `command`; nil for none.
    public var command: String?
    /// How long the program may take for one notice.
    public var commandTime: Duration = .seconds(30)

    public init() {}
}

/// The secret that a worker and the receiver of its notices share.
public struct NoticeSecret: Sendable {
    let bytes: [UInt8]

    private static let prefix = "whsec_"

    /// - Parameter text: the secret itself, or `whsec_` and the secret in Base64, as the Standard Webhooks
    ///   specification writes it. White space around it is ignored.
    /// - Throws: `usage` for a text that is too short to be a secret, or no Base64.
    public init(text: String) throws(WorkerError) {
        let words = text.split(whereSeparator: \.isWhitespace)
        guard words.count == 1, let word = words.first else {
            throw WorkerError(.usage, "The secret of notices must be one word without spaces.")
        }
        if word.hasPrefix(Self.prefix) {
            guard let data = Data(base64Encoded: String(word.dropFirst(Self.prefix.count))) else {
                throw WorkerError(.usage, "The secret of notices begins with whsec_, but the rest is not Base64.")
            }
            bytes = Array(data)
        } else {
            bytes = Array(word.utf8)
        }
        guard bytes.count >= Self.leastBytes else {
            throw WorkerError(
                .usage,
                "The secret of notices has \(bytes.count) bytes, and needs at least \(Self.leastBytes). Make one with: "
                    + "openssl rand -hex 32")
        }
    }

    private static let leastBytes = 16
}

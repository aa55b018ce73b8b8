internal import FoundationEssentials
internal import Hashing
internal import Jobs

/// The content of a notice, as JSON, and its signature.
struct NoticeMessage: Sendable {
    let id: String
    let body: [UInt8]

    private struct Content: Encodable {
        let type = "job.ended"
        let timestamp: String?
        let data: Job

        struct Job: Encodable {
            let job: JobProgress
            let failures: [FailureCounts.Count]
        }
    }

    /// Maximum kinds of failures in a notice; receivers hardly read more.
    private static let maxFailures = 100

    init(_ notice: JobNotice, _ progress: JobProgress, _ failures: FailureCounts) throws {
        id = notice.id
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        let job = Content.Job(job: progress, failures: Array(failures.counts.prefix(Self.maxFailures)))
        body = Array(try encoder.encode(Content(timestamp: progress.finishedAt, data: job)))
    }

    /// The headers of the Standard Webhooks specification: the id, the time in UTC seconds, and the HMAC-SHA256 of the
    /// id, the time and the body.
    func headers(at seconds: Int64, signedWith secret: NoticeSecret?) -> [(name: String, value: String)] {
        var headers = [
            (name: "Content-Type", value: "application/json"), (name: "Accept", value: "*/*"),
            (name: "webhook-id", value: id), (name: "webhook-timestamp", value: "\(seconds)"),
        ]
        guard let secret else { return headers }
        let code = SHA256.authenticationCode(of: Array("\(id).\(seconds).".utf8) + body, key: Array(secret.bytes))
        headers.append((name: "webhook-signature", value: "v1,\(Data(code).base64EncodedString())"))
        return headers
    }
}

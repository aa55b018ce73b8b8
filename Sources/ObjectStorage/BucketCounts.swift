/// What has been asked of a bucket, for metrics and for bills. Each try counts, since a server counts each.
public struct BucketCounts: Hashable, Sendable {
    /// By kind and answer: `put 2xx`, `get none` for a request without a usable answer. The kinds are get, put, head, list and
    /// delete.
    public private(set) var requests: [String: Int64] = [:]
    /// Bytes of the objects that were stored.
    public private(set) var sent: Int64 = 0
    /// Bytes of the answers' bodies.
    public private(set) var received: Int64 = 0

    mutating func count(_ call: BucketRequests.Call, _ answer: HTTPAnswer?) {
        let kind: Substring =
            switch call.method {
            case "POST": "delete"
            case "GET" where call.key == nil: "list"
            default: Substring(call.method.lowercased())
            }
        let status = answer.map { "\(max(0, min($0.status / 100, 9)))xx" } ?? "none"
        requests["\(kind) \(status)", default: 0] += 1
        guard let answer else { return }
        if answer.isGood, case .file(_, let size) = call.body { sent &+= size }
        received &+= max(0, answer.size)
    }
}

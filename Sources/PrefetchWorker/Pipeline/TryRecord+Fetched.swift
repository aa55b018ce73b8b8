internal import Download
internal import Jobs

extension Fetched {
    /// What is remembered of the request; nil where none was made.
    func record(at now: Int64) -> TryRecord? {
        switch self {
        case .crowded: return nil
        case .source(let source): return TryRecord(source.response, at: now)
        case .notModified(let response): return TryRecord(response, at: now)
        case .failed(let failure):
            if failure.failure == .cancelled { return nil }
            var record = failure.response.map { TryRecord($0, at: now) } ?? TryRecord(at: now)
            record.failure = failure.failure.rawValue
            record.message = failure.message
            return record
        }
    }
}

extension TryRecord {
    fileprivate init(_ response: DownloadResponse, at now: Int64) {
        let timings = response.timings
        self.init(at: now - timings.total.milliseconds)
        httpStatus = response.status
        received = response.bytesReceived
        saved = response.bytesSaved > 0 ? response.bytesSaved : nil
        redirects = response.redirects
        address = response.primaryAddress
        httpVersion = response.httpVersion
        dns = timings.dns.microseconds
        connect = timings.connect.microseconds
        tls = timings.tls.microseconds
        firstByte = timings.firstByte.microseconds
        total = timings.total.microseconds
    }
}

extension Duration {
    fileprivate var microseconds: Int64 { components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000 }
}

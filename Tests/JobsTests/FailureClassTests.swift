import Jobs
import Testing

@Suite("Failure classes", .timeLimit(.minutes(15)))
struct FailureClassTests {
    static let day: Int64 = 86_400_000
    static let table: [(FailureClass, String, FailureClass.Treatment)] = [
        (.dns, "dns", .retry), (.connect, "connect", .retry), (.timeout, "timeout", .retry),
        (.connectionLost, "connection-lost", .retry), (.tlsHandshake, "tls-handshake", .retry),
        (.http(408), "http-408", .retry), (.http(425), "http-425", .retry), (.http(429), "http-429", .retry),
        (.http(500), "http-500", .retry), (.http(502), "http-502", .retry), (.http(503), "http-503", .retry),
        (.http(504), "http-504", .retry),
        (.http(400), "http-400", .blacklist(milliseconds: day)),
        (.http(401), "http-401", .blacklist(milliseconds: day)),
        (.http(403), "http-403", .blacklist(milliseconds: day)),
        (.http(404), "http-404", .blacklist(milliseconds: day)),
        (.http(410), "http-410", .blacklist(milliseconds: day)),
        (.http(501), "http-501", .blacklist(milliseconds: day)),
        (.http(505), "http-505", .blacklist(milliseconds: day)),
        (.tlsCertificate, "tls-certificate", .blacklist(milliseconds: day)),
        (.tooManyRedirects, "too-many-redirects", .blacklist(milliseconds: day)),
        (.invalidURL, "invalid-url", .blacklist(milliseconds: 7 * day)),
        (.forbiddenAddress, "forbidden-address", .blacklist(milliseconds: 7 * day)),
        (.tooLarge, "too-large", .blacklist(milliseconds: 7 * day)),
        (.tooManyPixels, "too-many-pixels", .blacklist(milliseconds: 7 * day)),
        (.notAnImage, "not-an-image", .blacklist(milliseconds: 7 * day)),
        (.badImage, "bad-image", .blacklist(milliseconds: 7 * day)),
        (.decoderCrash, "decoder-crash", .blacklist(milliseconds: 7 * day)),
        (.truncated, "truncated", .retryThenBlacklist(milliseconds: day)),
        (.transform, "transform", .end), (.delegate, "delegate", .end), (.encode, "encode", .end),
        (.notCached, "not-cached", .end), (.cancelled, "cancelled", .end), (.denied, "denied", .end),
        (.optOut, "opt-out", .end), (.workerCrash, "worker-crash", .blacklist(milliseconds: day)),
        (.diskFull, "disk-full", .putBack), (.diskError, "disk-error", .putBack),
    ]

    @Test(arguments: table)
    func `Every class has a name and a treatment`(
        _ row: (failure: FailureClass, name: String, treatment: FailureClass.Treatment)
    ) {
        #expect(row.failure.rawValue == row.name)
        #expect(FailureClass(rawValue: row.name) == row.failure)
        #expect(row.failure.treatment == row.treatment)
    }

    @Test func `The table leaves no named class out`() {
        let inTable = Set(Self.table.map(\.0))
        #expect(FailureClass.allNamed.filter { !inTable.contains($0) } == [])
    }

    @Test(arguments: ["", "DNS", "http", "http-", "http-99", "http-1000", "http-4o4", "http--404", "timeout "])
    func `Nothing else is a class`(_ name: String) {
        #expect(FailureClass(rawValue: name) == nil)
    }

    @Test(arguments: FailureClass.allNamed + [.http(404), .http(503)])
    func `A class is stored with its item and shown by its name`(_ failure: FailureClass) async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.end(item, .failed(failure))
            let row = try #require(try await queue.store.results(job: job, after: 0, limit: 1).first)
            #expect(row.failure == failure.rawValue)
            #expect(row.httpStatus == FailureRecord(failure, "").httpStatus)
            let listed = try await queue.store.blacklist()
            #expect(listed.map(\.failure) == (failure.blacklistDuration == nil ? [] : [failure]))
            #expect(listed.first.map { $0.expiresAt - queue.clock.now } == failure.blacklistDuration)
        }
    }
}

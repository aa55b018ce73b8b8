import SystemPackage
import TestSupport
import Testing

@testable import Core
@testable import Jobs

@Suite("Failure classes", .timeLimit(.minutes(15)))
struct FailureClassTests {
    static let day: Int64 = 86_400_000

    /// The row of the page's table for a class.
    private func documented(_ row: FailureClass.Row) -> String {
        let (again, listed) =
            switch row.failure.treatment {
            case .retry: ("4 tries in all", "no")
            case .retryThenBlacklist: ("4 tries in all", "1 day after the last try")
            case .blacklist(Self.day): ("no", "1 day")
            case .blacklist: ("no", "7 days")
            case .end: ("no", "no")
            case .putBack: ("goes back; the worker waits", "no")
            }
        let isSetting = row.fault == .setting && row.failure.blacklistDuration != nil
        let until = isSetting ? ", while the setting is the same" : ""
        return "| `\(row.failure)` | \(row.meaning) | \(again) | \(listed)\(until) |"
    }

    @Test func `The page on failures has a row for each class, and no others`() throws {
        let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        let bytes = try #require(ProcessTable.contents(of: root.appending("docs/reference/failure-classes.md").string))
        let rows = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
            .drop { !$0.hasPrefix("| class | the item failed because") }.dropFirst(2).prefix { $0.hasPrefix("| `") }
        #expect(Array(rows.filter { !$0.contains("`http-") }) == FailureClass.table.map(documented))
        #expect(Set(FailureClass.allNamed).count == FailureClass.table.count)
    }

    @Test(
        arguments: [
            (408, .retry), (425, .retry), (429, .retry), (500, .retry), (502, .retry), (503, .retry), (504, .retry),
            (400, .blacklist(milliseconds: day)), (401, .blacklist(milliseconds: day)),
            (403, .blacklist(milliseconds: day)), (404, .blacklist(milliseconds: day)),
            (410, .blacklist(milliseconds: day)), (501, .blacklist(milliseconds: day)),
            (505, .blacklist(milliseconds: day)),
        ] as [(Int, FailureClass.Treatment)])
    func `Each HTTP status is a failure class with its own treatment`(
        _ row: (status: Int, treatment: FailureClass.Treatment)
    ) {
        #expect(FailureClass.http(row.status).rawValue == "http-\(row.status)")
        #expect(FailureClass.http(row.status).treatment == row.treatment)
    }

    @Test(arguments: FailureClass.allNamed + [.http(404), .http(503)])
    func `A failure class is parsed from its name`(_ failure: FailureClass) {
        #expect(FailureClass(rawValue: failure.rawValue) == failure)
    }

    @Test(arguments: ["", "DNS", "http", "http-", "http-99", "http-1000", "http-4o4", "http--404", "timeout "])
    func `An unknown name is no failure class`(_ name: String) {
        #expect(FailureClass(rawValue: name) == nil)
    }

    @Test(arguments: FailureClass.allNamed + [.http(404), .http(503)])
    func `A class is stored with its item and shown by its name`(_ failure: FailureClass) async throws {
        try await withQueue { queue in
            let job = try await queue.job()
            let item = try #require(try await queue.claim().first)
            try await queue.end(item, .failed(failure))
            let row = try #require(try await queue.store.reports.results(job: job, after: 0, limit: 1).first)
            #expect(row.failure == failure.rawValue)
            #expect(row.httpStatus == Failure(failure, "").httpStatus)
            let listed = try await queue.store.blacklist.entries()
            #expect(listed.map(\.failure) == (failure.blacklistDuration == nil ? [] : [failure]))
            #expect(
                listed.first.map { $0.expiresAt.milliseconds - queue.clock.milliseconds } == failure.blacklistDuration)
        }
    }
}

import Core
import Synchronization
import Testing

@testable import Download

@Suite(.timeLimit(.minutes(1))) struct AnswersTests {
    private final class Log: Sendable {
        private let numbers = Mutex<[UInt64]>([])
        var given: [UInt64] { numbers.withLock { $0 } }
        func note(_ number: UInt64) { numbers.withLock { $0.append(number) } }
    }

    private let now = ContinuousClock.now
    private let log = Log()

    private func add(_ numbers: ClosedRange<UInt64>, to answers: inout CompletionBatch) throws {
        let url = try DownloadURL("http://a.example/", maxBytes: 100)
        for number in numbers {
            let queued = QueuedTransfer(
                id: number, request: DownloadRequest(url: url.text), hop: Hop(url: url), beginning: url,
                onRedirect: { _ in }, answer: { [log] _ in log.note(number) })
            answers.add(.failed(.stopped()), to: queued, now: now)
        }
    }

    @Test func aFewAnswersAreGivenAfterAMillisecond() throws {
        var answers = CompletionBatch()
        #expect(answers.due == nil)
        try add(1...3, to: &answers)
        answers.giveIfDue(isLast: false, now: now + .microseconds(999))
        #expect(log.given == [])
        #expect(answers.due == now + .milliseconds(1))
        answers.giveIfDue(isLast: false, now: now + .milliseconds(1))
        #expect(log.given == [1, 2, 3])
        #expect(answers.due == nil)
    }

    @Test func sixteenAnswersAreGivenAtOnce() throws {
        var answers = CompletionBatch()
        try add(1...15, to: &answers)
        answers.giveIfDue(isLast: false, now: now)
        #expect(log.given == [])
        try add(16...16, to: &answers)
        answers.giveIfDue(isLast: false, now: now)
        #expect(log.given == Array(1...16))
    }

    @Test func theLastAnswerIsGivenAtOnce() throws {
        var answers = CompletionBatch()
        try add(1...1, to: &answers)
        answers.giveIfDue(isLast: true, now: now)
        #expect(log.given == [1])
    }

    @Test func eachAnswerIsGivenOnce() throws {
        var answers = CompletionBatch()
        try add(1...2, to: &answers)
        answers.give()
        answers.give()
        answers.giveIfDue(isLast: true, now: now + .seconds(1))
        #expect(log.given == [1, 2])
    }
}

import Core
import Download
import TestSupport
import Testing

@testable import enum Download.BodyFraming
@testable import struct Download.ContentRange
@testable import enum Download.Decimal

/// The end of a body (RFC 9112, section 6.3), and numbers out of range.
@Suite(.timeLimit(.minutes(15))) struct FramingTests {
    static let framings: [([String], [String], BodyFraming)] = [
        (["5"], [], .length(5)), (["5", "5"], [], .length(5)), (["5, 5"], [], .length(5)), ([" 05 "], [], .length(5)),
        ([], [], .untilClose), (["5"], ["chunked"], .chunked), ([], ["Chunked"], .chunked),
        ([], ["identity"], .untilClose), (["9"], ["identity, chunked"], .chunked),
        (["9223372036854775807"], [], .length(.max)), (["99999999999999999999999999"], [], .length(.max)),
        (["5", "6"], [], .unsound), (["5, 6"], [], .unsound), (["+5"], [], .unsound), (["-5"], [], .unsound),
        (["5abc"], [], .unsound), (["5,"], [], .unsound), ([""], [], .unsound), (["0x5"], [], .unsound),
        (["5 5"], [], .unsound), (["5", "abc"], [], .unsound), ([], ["gzip, chunked"], .unsound),
        ([], ["chunked, chunked"], .unsound), ([], ["chunked", "gzip"], .unsound),
    ]

    @Test(arguments: framings.indices) func theFramingFollowsTheStandard(_ index: Int) {
        let (lengths, encodings, framing) = Self.framings[index]
        #expect(BodyFraming(lengths: lengths, encodings: encodings) == framing)
    }

    private func origin(_ lines: String, body: String = "hello", closes: Bool = true) throws -> LoopbackOrigin {
        try LoopbackOrigin { _ in
            .raw("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n", body: Array(body.utf8), closes: closes)
        }
    }

    @Test(arguments: [
        "Content-Length: 5\r\nContent-Length: 6", "Content-Length: 4, 5", "Content-Length: +5", "Content-Length: 5abc",
        "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: \u{1}chunked", "Transfer-Encoding: chunked\u{B}",
        "Content-Length: \u{C}5",
    ])
    func aBodyWithAnInvalidFramingFails(_ lines: String) async throws {
        let origin = try origin(lines)
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect([.truncated, .connectionLost].contains(outcome.code), "\(outcome)")
        }
    }

    @Test func aRepeatedEqualLengthIsAccepted() async throws {
        let origin = try origin("Content-Length: 5, 5\r\nContent-Length: 5")
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            let bytes = try outcome.file?.bytes()
            #expect(bytes == Array("hello".utf8))
            #expect(outcome.response?.isWhole == true)
        }
    }

    @Test func aBodyThatEndsWithItsConnectionIsNotKnownToBeWhole() async throws {
        let origin = try origin("Content-Type: image/png")
        try await withDownloader { downloader in
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect(outcome.file != nil)
            #expect(outcome.response?.isWhole == false)
        }
    }

    /// The sum of the saved bytes of two such responses overflows.
    @Test(arguments: [
        "9223372036854775807", "9223372036854775808", "18446744073709551616", "99999999999999999999999999999999",
    ])
    func aLengthOutOfRangeIsTooLargeAtOnce(_ length: String) async throws {
        let origin = try origin("Content-Length: \(length)", closes: false)
        try await withDownloader { downloader in
            let start = ContinuousClock.now
            for path in ["/a", "/b", "/c"] {
                let outcome = await downloader.download(DownloadRequest(url: origin.url(path)))
                #expect(outcome.code == .tooLarge)
            }
            #expect(ContinuousClock.now - start < .seconds(60))
            #expect(downloader.counts.saved >= 0)
        }
    }

    @Test(arguments: ["404", "500", "302"])
    func anErrorWithALengthOutOfRangeKeepsItsStatus(_ status: String) async throws {
        let origin = try LoopbackOrigin { _ in
            .raw("HTTP/1.1 \(status) No\r\nContent-Length: 99999999999999999999\r\n\r\n", closes: false)
        }
        try await withDownloader { downloader in
            let start = ContinuousClock.now
            let outcome = await downloader.download(DownloadRequest(url: origin.url("/a")))
            #expect(outcome.code == .http(Int(status) ?? 0))
            #expect(ContinuousClock.now - start < .seconds(60))
        }
    }

    @Test func decimalsAreDigitsOnlyAndSaturate() {
        #expect(Decimal.parse("0012".utf8) == 12)
        #expect(Decimal.parse("9223372036854775807".utf8) == .max)
        #expect(Decimal.parse("9223372036854775808".utf8) == .max)
        #expect(Decimal.parse(String(repeating: "9", count: 1_000).utf8) == .max)
        for text in ["", " ", "+1", "-1", "1 ", "1.0", "0x1", "١"] { #expect(Decimal.parse(text.utf8) == nil) }
    }

    @Test(arguments: [
        "bytes +1-5/9", "bytes 1-+5/9", "bytes 1-9223372036854775807/*", "bytes 0-99999999999999999999/*",
        "bytes -1-5/9", "bytes 5-1/9",
    ])
    func anInvalidContentRangeIsNil(_ text: String) { #expect(ContentRange(text) == nil) }
}

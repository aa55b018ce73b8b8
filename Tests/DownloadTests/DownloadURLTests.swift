import Core
import Testing

@testable import Download

@Suite(.timeLimit(.minutes(15))) struct DownloadURLTests {
    @Test(arguments: [
        ("http://example.com", "http://example.com/"),
        ("HTTP://Example.COM:80/a.jpg", "http://example.com/a.jpg"),
        ("  https://example.com/a.jpg\t", "https://example.com/a.jpg"),
        ("https://example.com/a b/ü.jpg?q=ä b", "https://example.com/a%20b/%c3%bc.jpg?q=%c3%a4+b"),
        ("https://example.com/a%20b.jpg#part", "https://example.com/a%20b.jpg"),
        ("https://user:secret@example.com/a", "https://example.com/a"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("http://0x7f.1/a", "http://127.0.0.1/a"),
        ("http://[::1]:8080/a/../b", "http://[::1]:8080/b"),
    ])
    func aURLIsNormalised(text: String, sent: String) throws {
        let url = try DownloadURL(text, maxBytes: 8192)
        #expect(url.text.lowercased() == sent)
    }

    @Test(arguments: [
        "", "a.jpg", "/a.jpg", "//example.com/a.jpg", "ftp://example.com/a", "file:///etc/passwd",
        "data:image/png;base64,AA",
        "http://", "http://exa mple.com/", "http://example.com:99999/", "http://example.com:x/",
        "http://example.com/a\nb", "http://example.com/\u{0}", "http://[::1/", "javascript:alert(1)",
        "http://a..\u{7}/",
    ])
    func anInvalidURLIsRefused(text: String) {
        #expect {
            try DownloadURL(text, maxBytes: 8192)
        } throws: {
            ($0 as? Failure)?.failureClass == .invalidURL
        }
    }

    @Test func credentialsAreSplitFromTheURL() throws {
        let url = try DownloadURL("http://user%40x:p%3Aw@example.com/", maxBytes: 8192)
        #expect(url.credentials == DownloadURL.Credentials(user: "user@x", password: "p:w"))
        #expect(url.origin == DownloadURL.Origin(scheme: "http", host: "example.com", port: "80"))
    }

    @Test func theLimitCountsTheEncodedBytes() throws {
        let path = String(repeating: "ü", count: 100)
        #expect(throws: Failure.self) { try DownloadURL("http://example.com/\(path)", maxBytes: 300) }
        #expect(throws: Failure.self) { try DownloadURL("http://example.com/\(path)", maxBytes: 100) }
        #expect(try !DownloadURL("http://example.com/\(path)", maxBytes: 1000).text.isEmpty)
    }

    @Test(arguments: [
        ("/b", "https://example.com/b"), ("b?x=1", "https://example.com/dir/b?x=1"), ("../b", "https://example.com/b"),
        ("//other.example/b", "https://other.example/b"), ("http://other.example:81/b", "http://other.example:81/b"),
        ("?q", "https://example.com/dir/a?q"), ("/a b", "https://example.com/a%20b"),
    ])
    func aRedirectsLocationIsResolved(location: String, target: String) throws {
        let base = try DownloadURL("https://user:secret@example.com/dir/a", maxBytes: 8192)
        let url = try DownloadURL(location: Array(location.utf8), relativeTo: base, maxBytes: 8192)
        #expect(url.text == target)
        #expect(url.credentials == nil)
    }

    @Test func bytesThatAreNoUTF8AreEncoded() throws {
        let base = try DownloadURL("http://example.com/", maxBytes: 8192)
        let url = try DownloadURL(location: Array("/a".utf8) + [0xE4], relativeTo: base, maxBytes: 8192)
        #expect(url.text.lowercased() == "http://example.com/a%e4")
    }
}

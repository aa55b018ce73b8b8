import SystemPackage
import TestSupport
import Testing

@testable import Lists

/// The check of URLs, and the storage of a list's entries.
@Suite(.timeLimit(.minutes(5))) struct URLCheckTests {
    @Test(arguments: [
        "https://a.example/1.jpg", "HTTP://A.example:8080/x?y#z", "https://user:secret@a.example/1.jpg",
        "http://[::1]:80/x",
        "https://bücher.example/ä.jpg", "file:///srv/a.jpg", "data:image/png;base64,AAAA", "http://a_b.example",
        "http://a.example?x", "http://a.example:65535/x", "http://a.example:1", "http://a.example:/x",
        "http://a.example:0000080/x",
    ]) func `A valid URL is accepted`(_ text: String) { #expect(URLCheck.verdict(text) == .good) }

    @Test(arguments: [
        ("", "empty"), ("a.jpg", "'a.jpg' is no URL."),
        ("example.com/a.jpg", "Did you mean https://example.com/a.jpg?"),
        ("localhost:8080/a.jpg", "Did you mean https://localhost:8080/a.jpg?"),
        ("//a.example/1.jpg", "Did you mean https://a.example/1.jpg?"),
        ("htp://a/", "Did you mean http?"), ("httpss://a/", "Did you mean https?"), ("ftp://a/", "not fetched"),
        ("https:a.example/x", "Did you mean https://a.example/x?"),
        ("https:///x", "has no host"), ("http://a b/", "space in its host"), ("http://a:0/", "no valid port"),
        ("http://a:x/", "no valid port"), ("http://a:65536/", "no valid port"), ("http://a:80x/", "no valid port"),
        ("http://a:99999999999999999999/", "no valid port"),
        ("http://[::1/x", "not closed"), ("http://a/\u{1}", "control character"), ("http://a/\u{FFFD}", "is not UTF-8"),
        ("http://a/1 http://a/2", "two URLs"), ("~/pictures/a.jpg", "is no URL"),
        ("http://me:pw@/x", "'http://…@/x' has no host."),
    ]) func `An invalid URL is refused with the right form`(_ text: String, _ message: String) {
        guard case .bad(let told) = URLCheck.verdict(text) else { return #expect(Bool(false), "\(text)") }
        #expect(told.contains(message), "\(told)")
    }

    @Test func `A list longer than memory is kept in a file without a name, and can be read twice`() throws {
        try withTemporaryDirectory { folder in
            let spool = EntrySpool(folder: folder.string)
            let long = String(repeating: "ä", count: 300_000)
            for number in 0..<20_000 {
                try spool.append(url: "https://a.example/\(number)", meta: number % 2 == 0 ? nil : "{}")
            }
            try spool.append(url: long, meta: long)
            for _ in 0..<2 {
                try spool.rewind()
                var count = 0
                while let entry = try spool.next() {
                    if count == 20_000 {
                        #expect(entry.url == long && entry.meta == long)
                    } else {
                        #expect(entry.url == "https://a.example/\(count)" && (entry.meta == nil) == (count % 2 == 0))
                    }
                    count += 1
                }
                #expect(count == spool.count)
            }
            #expect(fileNames(in: folder.string) == [])
        }
    }

    /// A worker requests no longer one; `data:` URLs hold pictures.
    @Test func `A URL of more than 8 KiB is refused with its length`() {
        let path = "https://a.example/" + String(repeating: "x", count: 8_192 - 18)
        #expect(URLCheck.verdict(path) == .good)
        guard case .bad(let told) = URLCheck.verdict(path + "y") else { return #expect(Bool(false)) }
        #expect(told.contains("has 8193 bytes; a URL has at most 8192") && told.count < 300, "\(told)")
        #expect(URLCheck.verdict("data:image/png;base64," + String(repeating: "A", count: 20_000)) == .good)
    }
}

import Lists
import SystemPackage
import TestSupport
import Testing

/// Compressed lists, their character encodings, and files that are no lists.
@Suite(.timeLimit(.minutes(5))) struct EncodingTests {
    private static let text = "url,t\nhttps://a.example/1.jpg,Ä😀\n"

    private static func utf16(_ text: String, bigEndian: Bool, mark: Bool) -> [UInt8] {
        ((mark ? [0xFEFF] : []) + Array(text.utf16)).flatMap { pair($0, bigEndian) }
    }

    private static func pair(_ unit: UInt16, _ bigEndian: Bool) -> [UInt8] {
        let bytes = [UInt8(unit >> 8), UInt8(unit & 255)]
        return bigEndian ? bytes : bytes.reversed()
    }

    @Test func `UTF-8 and UTF-16 with and without a byte-order mark are read alike`() throws {
        let all = [
            [0xEF, 0xBB, 0xBF] + Array(Self.text.utf8), Self.utf16(Self.text, bigEndian: false, mark: true),
            Self.utf16(Self.text, bigEndian: true, mark: true), Self.utf16(Self.text, bigEndian: false, mark: false),
            Self.utf16(Self.text, bigEndian: true, mark: false),
        ]
        for bytes in all {
            let list = try ReadList(bytes)
            #expect(list.urls == ["https://a.example/1.jpg"])
            #expect(list.metas == [#"{"t":"Ä😀"}"#])
        }
    }

    @Test func `XML in UTF-16 may declare its encoding`() throws {
        let xml = #"<?xml version="1.0" encoding="UTF-16"?><urlset><url><loc>https://a.example/ä</loc></url></urlset>"#
        #expect(try ReadList(Self.utf16(xml, bigEndian: false, mark: true)).urls == ["https://a.example/ä"])
        let latin =
            Array(#"<?xml version="1.0" encoding="ISO-8859-1"?><urlset><url><loc>https://a.example/"#.utf8) + [0xE4]
            + Array("</loc></url></urlset>".utf8)
        #expect(try ReadList(latin).urls == ["https://a.example/ä"])
    }

    @Test(arguments: ["gzip", "zstd"]) func `Compressed lists are decompressed, also in several parts`(
        _ program: String
    ) throws {
        guard ChildProcess.find(program) != nil else { return }
        try withTemporaryDirectory { folder in
            let path = folder.appending("list").string
            let script = """
                seq 1 50000 | sed 's|.*|https://a.example/&.jpg|' | \(program) -c >\(path)
                echo https://a.example/last.jpg | \(program) -c >>\(path)
                """
            _ = try ChildProcess.run("sh", ["-c", script])
            let bytes = ProcessTable.contents(of: path) ?? []
            let list = try ReadList(bytes)
            #expect(list.urls.count == 50_001 && list.urls.last == "https://a.example/last.jpg")
            let cut = try ReadList(Array(bytes.prefix(bytes.count / 2)), name: "list.gz")
            #expect(cut.error?.contains("it was not copied completely") == true)
            let limited = try ReadList(bytes, name: "list.gz", limit: 100_000)
            #expect(limited.error?.contains("has more than 100000 bytes. Allow more with --max-list.") == true)
        }
    }

    @Test func `Damaged gzip is refused`() throws {
        let list = try ReadList([0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xFF, 0xFF, 0xFF], name: "list.gz")
        #expect(list.error == "list.gz is damaged: its gzip data can't be unpacked.")
    }

    @Test(
        arguments: [
            ([0x89, 0x50, 0x4E, 0x47, 0, 0], "is a PNG, not a list of URLs."),
            (
                Array("SQLite format 3\0".utf8),
                "is a SQLite database. Name the URLs by a query: --query 'SELECT url FROM …' --from list"
            ),
            (Array("PK\u{3}\u{4}".utf8), "a spreadsheet. Save it as CSV."), (Array("%PDF-1.7".utf8), "is a PDF."),
            (Array(" \n\t\n".utf8), "has no URLs."), ([], "has no URLs."), ([1, 0, 2, 3, 0, 0], "is not text"),
            (Array("[1]".utf8), "is one JSON array."), (Array("<svg></svg>".utf8), "begins with <svg>"),
        ] as [([UInt8], String)]) func `A file that is no list is refused with its kind`(
            _ bytes: [UInt8], _ message: String
        ) throws
    {
        let list = try ReadList(bytes)
        #expect(list.error?.contains(message) == true, "\(list.error ?? "")")
    }
}

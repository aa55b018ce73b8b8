@testable import Lists

// Lists of URLs: how they are recognised, and the readers of each kind.

extension FuzzTarget {
    static let listTargets = [
        listText, listCSV, listJSONLines, listSitemap, listFeed, listHTML, listDetection, listGzip, listZstd, listUTF16,
    ]

    /// The entries and mistakes of a list that comes in pieces of this size.
    private static func events(
        of bytes: UnsafeRawBufferPointer, as format: ListFormat, piece: Int, path: String? = nil,
    ) -> [String] {
        var events: [String] = []
        var request = ListRequest(name: "list")
        request.path = path
        request.base = format == .html ? "https://example.com/a/" : nil
        do {
            let output = ListOutput { event in events.append("\(event)") }
            let parser = try ListReader.parser(
                ListDetector.Finding(format: format), request, output, isConverted: false, isUTF8: true)
            for start in stride(from: 0, to: bytes.count, by: piece) {
                try parser.feed(UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + piece)]))
            }
            try parser.finish()
        } catch {
            events.append("\(error)")
        }
        return events
    }

    /// - Parameter isSteady: whether it must not matter where a list is cut into pieces.
    private static func list(
        _ name: String, _ format: ListFormat, seeds: [String], path: String? = nil, isSteady: Bool = true,
    ) -> FuzzTarget {
        FuzzTarget(name: name, seeds: seeds.map { Array($0.utf8) }) { bytes in
            let whole = events(of: bytes, as: format, piece: max(1, bytes.count), path: path)
            let cut = events(of: bytes, as: format, piece: 3, path: path)
            precondition(!isSteady || whole == cut)
        }
    }

    private static let listText = list(
        "list-text", .text,
        seeds: [
            "https://a.example/1.jpg\r\n# no\n  http://[::1]:80/ \rftp://x/y\nexample.com/a", "https:/a b\n\n//c/d",
        ])

    private static let listCSV = list(
        "list-csv", .csv,
        seeds: [
            "url,sku\r\nhttps://a.example/1.jpg,\"7,\"\"x\"\"\n\"\r\n", "https://a/1,2\nhttps://a/2,3,4\n",
            "a,b\nhttps://x/1,https://x/2\n", "\"open\nx",
        ])

    private static let listJSONLines = list(
        "list-json-lines", .jsonl,
        seeds: [
            "{\"url\":\"https:\\/\\/a.example\\/1.jpg\",\"n\":[1,{\"x\":null}],\"e\":\"\\ud83d\\ude00\"}\n\"https://b/\"\n",
            "{\"images\":[{\"src\":\"https://a/1\"},{\"src\":\"https://a/2\"}]}", "[1e5,-0.1,true]",
        ], path: "images[].src")

    private static let listSitemap = list(
        "list-sitemap", .sitemap,
        seeds: [
            """
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i="\
            http://www.google.com/schemas/sitemap-image/1.1"><url><loc>https://a/&amp;</loc><i:image><i:loc>\
            https://a/1.jpg</i:loc><i:title><![CDATA[x]]></i:title></i:image></url></urlset>
            """,
            "<sitemapindex><sitemap><loc>https://a/s.xml</loc></sitemap></sitemapindex>",
            "<!DOCTYPE urlset [<!ENTITY a \"aa\"><!ENTITY b \"&a;&a;\">]><urlset><url><loc>&b;</loc></url></urlset>",
        ], isSteady: false)

    private static let listFeed = list(
        "list-feed", .feed,
        seeds: [
            """
            <rss xmlns:m="http://search.yahoo.com/mrss/"><channel><item><title>t</title><enclosure url="https://a/1.jpg" \
            type="image/jpeg"/><m:content url="https://a/2&amp;3" medium="image"/></item></channel></rss>
            """,
            "<feed><entry><link rel=\"enclosure\" href=\"https://a/1\"/></entry></feed>",
        ], isSteady: false)

    private static let listHTML = list(
        "list-html", .html,
        seeds: [
            "<base href=/b/><img src=1.jpg srcset='a 1x,b,c 2x'><picture><source srcset=' ,x 3w'></picture><script><img ",
            "<meta property=og:image content=//x/y><link rel=preload as=image imagesrcset='a,b'>&amp;&#0;&unknown;",
        ], isSteady: false)

    private static let listDetection = FuzzTarget(
        name: "list-detection",
        seeds: [
            "url\nhttps://a/", "https://a/1,2\nhttps://a/2,3", "<?xml version='1.0'?><!-- x --><rss>", "{}", "\u{0}",
        ]
        .map { Array($0.utf8) }
    ) { bytes in
        for isCut in [true, false] {
            _ = try? ListDetector(sample: bytes, request: ListRequest(name: "list.csv"), isCut: isCut).find()
            _ = try? ListDetector(sample: bytes, request: ListRequest(name: "list"), isCut: isCut).find()
        }
    }

    private static let listGzip = unpacker(
        "list-gzip", [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    ) {
        try GzipUnpacker("list")
    }

    private static let listZstd = unpacker(
        "list-zstd", [0x28, 0xB5, 0x2F, 0xFD, 4, 0, 9, 0, 0, 0x61, 0x53, 0x25, 0x58, 0xF4]
    ) {
        try ZstdUnpacker("list")
    }

    /// Stops at 16 MiB, since a few bytes may unpack to any number.
    private static func unpacker(
        _ name: String, _ seed: [UInt8], _ make: @escaping @Sendable () throws -> any Unpacker,
    ) -> FuzzTarget {
        struct Enough: Error {}
        return FuzzTarget(name: name, seeds: [seed]) { bytes in
            var count = 0
            do {
                let unpacker = try make()
                for part in [bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)] {
                    try unpacker.unpack(Array(part), isLast: false) {
                        count += $0.count
                        if count > 16 << 20 { throw Enough() }
                    }
                }
                try unpacker.unpack([], isLast: true) { _ in }
            } catch {}
        }
    }

    private static let listUTF16 = FuzzTarget(
        name: "list-utf16",
        seeds: [[0xFF, 0xFE, 0x68, 0, 0x74, 0], [0xFE, 0xFF, 0xD8, 0x3D, 0xDE, 0], [0x68, 0, 0x74, 0]]
    ) { bytes in
        func converted(_ pieces: [Slice<UnsafeRawBufferPointer>]) -> [UInt8] {
            guard var converter = UTF16Converter(for: bytes) else { return [] }
            return pieces.flatMap { converter.convert(UnsafeRawBufferPointer(rebasing: $0), isLast: false) }
                + converter.convert(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
        }
        precondition(
            converted([bytes[...]]) == converted([bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)]))
    }
}

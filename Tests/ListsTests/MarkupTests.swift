import Lists
import Testing

/// Sitemaps, feeds and pages.
@Suite(.timeLimit(.minutes(5))) struct MarkupTests {
    private static let image = #"xmlns:i="http://www.google.com/schemas/sitemap-image/1.1""#

    @Test func `A sitemap with the image extension lists its pictures`() throws {
        let list = try ReadList(
            """
            <?xml version="1.0"?><!-- <rss> --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" \(Self.image)>
            <url><loc>https://a.example/p?a=1&amp;b</loc><lastmod>2026-01-01</lastmod>
            <i:image><i:loc> https://a.example/1.jpg?x&amp;y </i:loc><i:title><![CDATA[A & B]]></i:title></i:image>
            <i:image><i:loc>https://a.example/2.jpg</i:loc></i:image></url>
            <url><loc>https://a.example/none</loc></url></urlset>
            """)
        #expect(list.format == .sitemap)
        #expect(list.urls == ["https://a.example/1.jpg?x&y", "https://a.example/2.jpg"])
        #expect(list.metas.first == #"{"page":"https://a.example/p?a=1&b","title":"A & B","lastmod":"2026-01-01"}"#)
        #expect(list.entries.map(\.line) == [3, 4])
    }

    @Test func `A sitemap without images lists its addresses, and an index lists its sitemaps`() throws {
        #expect(
            try ReadList("<urlset><url><loc>https://a.example/1.jpg</loc></url></urlset>").urls == [
                "https://a.example/1.jpg"
            ])
        let index = try ReadList("<sitemapindex><sitemap><loc>https://a.example/s.xml</loc></sitemap></sitemapindex>")
        #expect(index.nested == ["https://a.example/s.xml"] && index.urls == [])
    }

    @Test func `Feeds list enclosures and media that are images`() throws {
        let rss = try ReadList(
            """
            <rss xmlns:media="http://search.yahoo.com/mrss/"><channel><title>no</title><image><url>https://a.example/no.png</url>
            </image><item><title>T</title><link>https://a.example/t</link><enclosure type="image/jpeg" url="https://a.example/1.jpg?a&amp;b"/>
            <enclosure type="audio/mpeg" url="https://a.example/1.mp3"/><media:group><media:content url="https://a.example/2.jpg" \
            medium="image"><media:title>no</media:title></media:content></media:group></item>
            <item><media:thumbnail url="https://a.example/3.jpg"/></item></channel></rss>
            """)
        #expect(rss.urls == ["https://a.example/1.jpg?a&b", "https://a.example/2.jpg", "https://a.example/3.jpg"])
        #expect(
            rss.metas == [
                #"{"page":"https://a.example/t","title":"T"}"#, #"{"page":"https://a.example/t","title":"T"}"#, nil,
            ])
        let atom = try ReadList(
            """
            <feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title><link href="https://a.example/t"/>
            <link rel="enclosure" type="image/png" href="https://a.example/1.png"/></entry></feed>
            """)
        #expect(atom.format == .feed && atom.urls == ["https://a.example/1.png"])
        #expect(
            try ReadList("<rss><channel><item/></channel></rss>").error?.contains("is a feed without pictures") == true)
    }

    @Test func `A page lists each of its pictures once, resolved by the page's address`() throws {
        let page = """
            <!doctype html><head><base href="/b/"><meta property="og:image" content="https://c.example/og.jpg">
            <link rel=preload as=image href=p.jpg imagesrcset="p.jpg 1x, p2.jpg 2x"><link rel=stylesheet href=x.css></head>
            <img src=" 1.jpg " srcset="1.jpg 1x,2,3.jpg 2x" alt="A &amp; B"><img src="data:image/png;base64,xx" data-src=l.jpg>
            <picture><source srcset="w.webp 100w, //d.example/w2.webp 200w"></picture><p>unclosed<img src="&#x2F;4.jpg?a=1&amp;b=2">
            """
        let list = try ReadList(page) { $0.base = "https://a.example/x/y" }
        #expect(
            list.urls == [
                "https://c.example/og.jpg", "https://a.example/b/p.jpg", "https://a.example/b/p2.jpg",
                "https://a.example/b/1.jpg", "https://a.example/b/2,3.jpg", "https://a.example/b/l.jpg",
                "https://a.example/b/w.webp", "https://d.example/w2.webp", "https://a.example/4.jpg?a=1&b=2",
            ])
        #expect(list.metas[3] == #"{"alt":"A & B"}"#)
        let file = try ReadList("<html><img src=1.jpg><img src=https://a.example/2.jpg>")
        #expect(file.urls == ["https://a.example/2.jpg"])
        #expect(
            file.mistakes.first?.contains("line 1: '1.jpg' is relative. Name the page's address with --base") == true)
        #expect(try ReadList("<html><p>x</p>").error?.contains("is a page without pictures") == true)
    }

    // MARK: - Hostile documents

    @Test(arguments: [
        #"<!DOCTYPE urlset [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>"#,
        #"<!DOCTYPE urlset [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>https://a/&x;</loc></url></urlset>"#,
        #"<!DOCTYPE urlset [<!ENTITY % p SYSTEM "http://127.0.0.1:1/x.dtd"> %p;]><urlset><url><loc>https://a/</loc></url></urlset>"#,
        #"<!DOCTYPE urlset [<!ATTLIST loc x CDATA "y">]><urlset><url><loc>https://a/</loc></url></urlset>"#,
    ]) func `A document that declares entities is refused before it uses them`(_ text: String) throws {
        let list = try ReadList(text)
        #expect(list.error?.contains("declares entities or attributes of its own") == true, "\(list)")
        #expect(list.urls == [])
    }

    @Test func `An undeclared entity is broken XML, and an external DTD is ignored`() throws {
        let unknown = try ReadList("<urlset><url><loc>https://a.example/&x;</loc></url></urlset>")
        #expect(unknown.error?.contains("is broken XML") == true)
        let external = try ReadList(
            #"<!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss><item><enclosure url="https://a.example/1.jpg"/></item></rss>"#
        )
        #expect(external.urls == ["https://a.example/1.jpg"])
    }

    @Test func `Broken XML is refused with its line`() throws {
        let list = try ReadList("<urlset>\n<url><loc>https://a.example/1.jpg</loc>\n</urlset>")
        #expect(list.error?.hasPrefix("line 3: list is broken XML: an end tag does not match") == true, "\(list)")
        for (text, words) in [
            ("<urlset><url><loc>https://a.example/1.jpg</loc></url>", "ends before its first element is closed"),
            ("<urlset><url><loc>https://a.example/1.jpg?a=1&b=2</loc></url></urlset>", "written as &amp;"),
            ("<urlset><url a=1><loc>https://a.example/1.jpg</loc></url></urlset>", "quotes"),
            ("<urlset><url><loc>https://a.example/1.jpg</loc", "not closed"),
            ("<urlset><url><loc>a < b</loc></url></urlset>", "written as &lt;"),
        ] {
            let error = try ReadList(text).error ?? ""
            #expect(error.contains("is broken XML: ") && error.contains(words), "\(error)")
        }
    }

    @Test func `Endless text and depth are cut or refused`() throws {
        let long =
            "<urlset><url><loc>https://a.example/" + String(repeating: "x", count: 3_000_000) + "</loc></url></urlset>"
        // 64 KiB of an element's text are kept; a URL has 8 KiB at most.
        let list = try ReadList(long)
        #expect(
            list.urls.isEmpty && list.mistakes.first?.contains("has 65536 bytes; a URL has at most 8192") == true,
            "\(list)")
        let deep = try ReadList("<html>" + String(repeating: "<b>", count: 200_000))
        #expect(deep.error?.contains("elements are nested") == true || deep.error?.contains("without pictures") == true)
        let nested = try ReadList("<urlset>" + String(repeating: "<a>", count: 200_000))
        #expect(nested.error?.contains("is broken XML") == true)
    }
}

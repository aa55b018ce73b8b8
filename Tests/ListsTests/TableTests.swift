import Lists
import Testing

/// Text, CSV, TSV and JSON Lines.
@Suite(.timeLimit(.minutes(5))) struct TableTests {
    @Test func `A text list has a URL on each line, with every kind of line ending`() throws {
        let list = try ReadList(
            "https://a.example/1.jpg\r\n\r\n# no\n \thttps://a.example/2.jpg \rhttps://a.example/3.jpg")
        #expect(list.format == .text)
        #expect(list.urls == (1...3).map { "https://a.example/\($0).jpg" })
        #expect(list.entries.map(\.line) == [1, 4, 5])
    }

    @Test func `CSV has quotes, and the rest of a row becomes its meta`() throws {
        let list = try ReadList(
            "sku,url,title\r\n7,https://a.example/1.jpg,\"A, \"\"b\"\"\nc\"\r\n,https://a.example/2.jpg,\r\n")
        #expect(list.format == .csv)
        #expect(list.urls == ["https://a.example/1.jpg", "https://a.example/2.jpg"])
        #expect(list.metas == [#"{"sku":"7","title":"A, \"b\"\nc"}"#, #"{"sku":"","title":""}"#])
        #expect(list.entries.map(\.line) == [2, 4])
    }

    @Test(arguments: [
        ("url;sku\nhttps://a.example/1.jpg;7\n", ListFormat.csv), ("url|sku\nhttps://a.example/1.jpg|7\n", .csv),
        ("url\tsku\nhttps://a.example/1.jpg\t7\n", .tsv),
        ("7,https://a.example/1.jpg\n8,https://a.example/2.jpg\n", .csv),
        ("url\nhttps://a.example/1.jpg\n", .csv), ("{\"sku\":7,\"url\":\"https://a.example/1.jpg\"}\n", .jsonl),
        ("https://a.example/1.jpg\nhttps://a.example/2.jpg\n", .text),
    ]) func `The format of a list is recognised by its first lines`(_ text: String, _ format: ListFormat) throws {
        let list = try ReadList(text)
        #expect(list.format == format)
        #expect(list.urls.first == "https://a.example/1.jpg")
        #expect(list.mistakes == [] && list.error == nil)
    }

    /// Image services have commas in their URLs.
    @Test func `URLs with commas are read as a text list, with a note`() throws {
        let text = "https://a.example/w_100,h_80/1.jpg\nhttps://a.example/w_100,h_80/2.jpg\n"
        let list = try ReadList(text)
        #expect(list.format == .text && list.urls.count == 2)
        #expect(list.doubt?.contains("--format csv") == true)
        #expect(try ReadList(text, name: "list.csv").format == .csv)
    }

    @Test func `Without a header, columns are named by their numbers`() throws {
        let list = try ReadList("7,https://a.example/1.jpg\n")
        #expect(list.metas == [#"{"column_1":"7"}"#])
        #expect(try ReadList("7,https://a.example/1.jpg\n") { $0.column = "2" }.urls == ["https://a.example/1.jpg"])
    }

    @Test func `A column without a name gets a unique name`() throws {
        let list = try ReadList(",url,column_1,url\nx,https://a.example/1.jpg,y,z\n") { $0.column = "url" }
        #expect(list.metas == [#"{"column_1_":"x","column_1":"y","column_4":"z"}"#])
    }

    @Test(
        arguments: [
            ("url,sku\nhttps://a.example/1.jpg,7,8\n", nil, "line 2: The row has 3 cells and not 2"),
            ("url,sku\n,7\n", nil, "line 2: The column 'url' is empty."),
            ("url,sku\nhttps://a.example/1.jpg,\"7\n", nil, "line 2: A quote is opened in the row that begins here"),
            ("url,sku\n", nil, "has a header and no rows"),
            ("a,b\nx,y\n", nil, "line 2: No column of list has a URL"),
            ("a,b\nhttps://a.example/1,https://a.example/2\n", nil, "Several columns have URLs: 'a', 'b'."),
            ("img,b\nhttps://a.example/1,2\n", "imgg", "has no column 'imgg'. Did you mean 'img'?"),
            ("img,b\nhttps://a.example/1,2\n", "3", "has the columns 1 to 2, not 3."),
            ("img,b\nhttps://a.example/1,2\n", "0", "has the columns 1 to 2, not 0."),
            ("img,b\nhttps://a.example/1,2\n", "\(Int.min)", "has the columns 1 to 2, not \(Int.min)."),
            ("url,t\nhttps://a.example/1,\u{FFFD}\n", nil, "line 2: The column 't' is not UTF-8."),
        ] as [(String, String?, String)]) func `A wrong table is refused with its line`(
            _ text: String, _ column: String?, _ message: String,
        ) throws
    {
        let list = try ReadList(text) { ($0.column, $0.format) = (column, .csv) }
        #expect(((list.error ?? "") + list.mistakes.joined()).contains(message), "\(list)")
        #expect(list.urls == [])
    }

    @Test func `A row longer than a mebibyte is refused`() throws {
        let list = try ReadList("url,t\nhttps://a.example/1.jpg,\"" + String(repeating: "x\n", count: 700_000))
        #expect(list.error?.contains("a quote is opened and never closed") == true)
    }

    @Test func `JSON Lines keep values unchanged`() throws {
        let list = try ReadList(
            #"{"n":1.50,"url":"https:\/\/a.example\/1.jpg","o":{"x":[null,true]},"s":"\ud83d\ude00"}"# + "\n"
                + #""https://a.example/2.jpg""# + "\n")
        #expect(list.urls == ["https://a.example/1.jpg", "https://a.example/2.jpg"])
        #expect(list.metas == [#"{"n":1.50,"o":{"x":[null,true]},"s":"\ud83d\ude00"}"#, nil])
    }

    @Test(arguments: [
        ("image.url", ["https://a.example/0.jpg"]), ("$.image.url", ["https://a.example/0.jpg"]),
        ("images[1].src", ["https://a.example/2.jpg"]),
        ("images[].src", ["https://a.example/1.jpg", "https://a.example/2.jpg"]),
    ]) func `A path leads to URLs deeper in an object`(_ path: String, _ urls: [String]) throws {
        let text = """
            {"image":{"url":"https://a.example/0.jpg"},"images":[{"src":"https://a.example/1.jpg"},\
            {"src":"https://a.example/2.jpg"}],"id":7}
            """
        let list = try ReadList(text) { $0.path = path }
        #expect(list.urls == urls)
        #expect(list.metas.allSatisfy { $0?.contains(#""id":7"#) == true })
    }

    @Test(
        arguments: [
            (
                "{\"url\":\"https://a.example/1.jpg\"\n", nil,
                "line 1: The line is no JSON: a comma or the closing bracket is missing."
            ),
            ("{\n\"url\":\"x\"\n}\n", nil, "one line by: jq -c ."),
            ("7\n", nil, "line 1: The line is neither a JSON object nor a string."),
            ("{\"a\":1}\n", nil, "line 1: No member is a URL. The members are: 'a'."),
            ("{\"a\":\"https://x/\",\"b\":\"https://y/\"}\n", nil, "Several members have URLs: 'a', 'b'."),
            ("{\"image\":1}\n", "imge.url", "no text at the path 'imge.url'. Did you mean 'image'?"),
            ("{\"image\":1}\n", "image[", "is no path to a member"),
            ("{\"url\":\"https://a.example/1.jpg\"} x\n", nil, "something follows the JSON value"),
            ("{\"n\":01,\"url\":\"https://a.example/1.jpg\"}\n", nil, "'01' is no number"),
        ] as [(String, String?, String)]) func `A line that is no JSON is refused with its number`(
            _ text: String, _ path: String?, _ message: String,
        ) throws
    {
        let list = try ReadList(text) { ($0.path, $0.format) = (path, .jsonl) }
        #expect(((list.error ?? "") + list.mistakes.joined()).contains(message), "\(list)")
    }

    @Test func `Meta beyond 16 KiB is refused, as the database would`() throws {
        let long = String(repeating: "x", count: 17_000)
        #expect(
            try ReadList("url,t\nhttps://a.example/1.jpg,\(long)\n").mistakes == [
                "line 2: The other columns have more than 16 KiB together."
            ])
    }
}

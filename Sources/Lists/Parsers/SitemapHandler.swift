/// A sitemap: the pictures of its image extension, or its addresses where it has none; an index: its sitemaps.
final class SitemapHandler: MarkupHandler {
    private static let imageSpace = "http://www.google.com/schemas/sitemap-image/1.1"
    /// Maximum pictures of one page; further ones are left out.
    private static let maxPictures = 10_000

    private let request: ListRequest
    private let output: ListOutput
    private var text = MarkupText()
    private var isRoot = true
    private var isIndex = false
    private var hasPictures = false
    private var page = ""
    private var modified = ""
    private var line = 0
    private var pictures: [(url: String, meta: [ListMember], line: Int)] = []
    private var picture = (url: "", meta: [ListMember](), line: 0)
    private var isEmpty = true

    init(request: ListRequest, _ output: ListOutput) {
        self.request = request
        self.output = output
    }

    func start(_ element: MarkupElement, line: Int) throws {
        if isRoot { return try begin(element, line) }
        switch (element.name, element.space == Self.imageSpace) {
        case ("url", false), ("sitemap", false): (page, modified, self.line, pictures) = ("", "", line, [])
        case ("image", true): picture = ("", [], line)
        case ("loc", _), ("title", true), ("caption", true), ("lastmod", false): text.begin()
        default: break
        }
    }

    private func begin(_ root: MarkupElement, _ line: Int) throws {
        isRoot = false
        switch root.name {
        case "sitemapindex": isIndex = true
        case "urlset": hasPictures = root.declaredSpaces.contains(Self.imageSpace)
        default:
            throw ListMistake(
                line: line,
                "\(request.name) is no sitemap: it begins with <\(URLCheck.shown(root.name))>, not <urlset>.")
        }
    }

    func text(_ bytes: UnsafeRawBufferPointer) { text.add(bytes) }

    func end(_ name: String, space: String) throws {
        switch (name, space == Self.imageSpace) {
        case ("loc", false): page = text.end()
        case ("lastmod", false): modified = text.end()
        case ("loc", true): picture.url = text.end()
        case ("title", true), ("caption", true): picture.meta.append(ListMember(name: name, text: text.end()))
        case ("image", true):
            if pictures.count < Self.maxPictures { pictures.append(picture) }
        case ("url", false), ("sitemap", false): try put()
        default: break
        }
    }

    private func put() throws {
        isEmpty = false
        if isIndex { return try output.nest(page, line: line) }
        let common = modified.isEmpty ? [] : [ListMember(name: "lastmod", text: modified)]
        guard hasPictures else { return try output.put(page, meta: common, line: line) }
        for picture in pictures {
            let meta = [ListMember(name: "page", text: page)] + picture.meta + common
            try output.put(picture.url, meta: meta, line: picture.line)
        }
    }

    func finish() throws {
        if isEmpty { throw ListMistake("\(request.name) is a sitemap without URLs.") }
    }
}

/// The text of one element, cut at a length that no URL has.
struct MarkupText {
    private static let longest = 65_536

    private var bytes: [UInt8] = []
    private var isOpen = false

    mutating func begin() {
        isOpen = true
        bytes.removeAll(keepingCapacity: true)
    }

    mutating func add(_ more: UnsafeRawBufferPointer) {
        guard isOpen, bytes.count < Self.longest else { return }
        bytes.append(contentsOf: more.prefix(Self.longest - bytes.count))
    }

    mutating func end() -> String {
        isOpen = false
        return String(decoding: bytes, as: UTF8.self).trimmed
    }
}

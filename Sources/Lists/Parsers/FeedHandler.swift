/// RSS and Atom: the pictures of enclosures and of `media:content`.
final class FeedHandler: MarkupHandler {
    private static let mediaSpace = "http://search.yahoo.com/mrss/"
    /// Maximum pictures of one item; further ones are left out.
    private static let maxPictures = 1_000

    private let request: ListRequest
    private let output: ListOutput
    private var text = MarkupText()
    private var isRoot = true
    private var isInItem = false
    private var title = ""
    private var page = ""
    private var pictures: [(url: String, line: Int)] = []
    private var thumbnails: [(url: String, line: Int)] = []
    private var isEmpty = true

    init(request: ListRequest, _ output: ListOutput) {
        self.request = request
        self.output = output
    }

    func start(_ element: MarkupElement, line: Int) throws {
        if isRoot {
            isRoot = false
            guard ["rss", "feed", "rdf"].contains(element.name.lowercased()) else {
                throw ListMistake(
                    line: line, "\(request.name) is no feed: it begins with <\(URLCheck.shown(element.name))>.")
            }
            return
        }
        if element.name == "item" || element.name == "entry" {
            (isInItem, title, page, pictures, thumbnails) = (true, "", "", [], [])
        }
        guard isInItem else { return }
        let isMedia = element.space == Self.mediaSpace
        switch element.name {
        case "enclosure": add(element["url"], element, line)
        case "content" where isMedia: add(element["url"], element, line)
        case "thumbnail" where isMedia:
            if let url = element["url"], thumbnails.count < Self.maxPictures { thumbnails.append((url.trimmed, line)) }
        case "link" where element["rel"] == "enclosure": add(element["href"], element, line)
        case "link" where element["href"] != nil:
            if (element["rel"] ?? "alternate") == "alternate" { page = element["href"] ?? "" }
        case "title" where !isMedia, "link": text.begin()
        default: break
        }
    }

    /// Adds the picture, unless it says that it is something else.
    private func add(_ url: String?, _ element: MarkupElement, _ line: Int) {
        guard let url, pictures.count < Self.maxPictures else { return }
        let kind = element["type"] ?? element["medium"]
        guard kind == nil || kind?.lowercased().hasPrefix("image") == true else { return }
        pictures.append((url.trimmed, line))
    }

    func text(_ bytes: UnsafeRawBufferPointer) { text.add(bytes) }

    func end(_ name: String, space: String) throws {
        guard isInItem else { return }
        switch name {
        case "title" where space != Self.mediaSpace: title = text.end()
        case "link" where page.isEmpty: page = text.end()
        case "item", "entry": try put()
        default: break
        }
    }

    private func put() throws {
        isInItem = false
        var meta: [ListMember] = []
        if !page.isEmpty { meta.append(ListMember(name: "page", text: page)) }
        if !title.isEmpty { meta.append(ListMember(name: "title", text: title)) }
        for (url, line) in pictures.isEmpty ? thumbnails : pictures {
            isEmpty = false
            try output.put(url, meta: meta, line: line)
        }
    }

    func finish() throws {
        guard isEmpty else { return }
        throw ListMistake(
            "\(request.name) is a feed without pictures: no item has an enclosure or a media:content that is an image.")
    }
}

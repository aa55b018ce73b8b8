internal import FoundationEssentials

/// The pictures of a page: `img`, `srcset`, `picture`, `og:image`, `link rel=preload as=image`, each URL once.
final class HTMLHandler: MarkupHandler {
    /// Maximum URLs that are remembered to leave out repeated ones.
    private static let maxKnown = 1 << 20

    private let request: ListRequest
    private let output: ListOutput
    private var base: URL?
    private var hasBaseElement = false
    private var known: Set<Int> = []
    private var isEmpty = true

    init(request: ListRequest, _ output: ListOutput) {
        self.request = request
        self.output = output
        base = request.base.flatMap { URL(string: $0) }
    }

    func start(_ element: MarkupElement, line: Int) throws {
        switch element.name {
        case "base":
            guard !hasBaseElement, let href = element["href"] else { return }
            hasBaseElement = true
            base = resolve(href).flatMap { URL(string: $0) } ?? base
        case "img":
            let alt = element["alt"].map(\.trimmed) ?? ""
            let meta = alt.isEmpty ? [] : [ListMember(name: "alt", text: String(alt.prefix(2_000)))]
            for name in ["src", "data-src"] { try put(element[name], meta, line) }
            for name in ["srcset", "data-srcset"] { try put(set: element[name], meta, line) }
        case "source":
            for name in ["srcset", "data-srcset"] { try put(set: element[name], [], line) }
        case "meta":
            let names = ["og:image", "og:image:url", "og:image:secure_url", "twitter:image"]
            if names.contains(element["property"] ?? element["name"] ?? "") { try put(element["content"], [], line) }
        case "link":
            guard element["rel"]?.lowercased() == "preload", element["as"]?.lowercased() == "image" else { return }
            try put(element["href"], [], line)
            try put(set: element["imagesrcset"], [], line)
        default: break
        }
    }

    func text(_: UnsafeRawBufferPointer) {}

    func end(_: String, space _: String) throws {}

    /// https://html.spec.whatwg.org/multipage/images.html#parse-a-srcset-attribute
    private func put(set: String?, _ meta: [ListMember], _ line: Int) throws {
        guard let set else { return }
        let isSpace: (UInt8) -> Bool = { $0 == 32 || (9...13).contains($0) }
        var rest = Array(set.utf8)[...]
        while true {
            rest = rest.drop { isSpace($0) || $0 == UInt8(ascii: ",") }
            var url = rest.prefix { !isSpace($0) }
            guard !url.isEmpty else { return }
            rest = rest.dropFirst(url.count)
            if url.last == UInt8(ascii: ",") {
                while url.last == UInt8(ascii: ",") { url = url.dropLast() }
            } else {
                // The width or density.
                rest = rest.drop { $0 != UInt8(ascii: ",") }
            }
            try put(String(decoding: url, as: UTF8.self), meta, line)
        }
    }

    private func put(_ text: String?, _ meta: [ListMember], _ line: Int) throws {
        guard let text = text?.trimmed, !text.isEmpty, !text.lowercased().hasPrefix("data:"), !text.hasPrefix("blob:")
        else { return }
        isEmpty = false
        guard let url = resolve(text) else {
            return try output.refuse(
                line,
                "'\(URLCheck.shown(text))' is relative. Name the page's address with --base, such as --base https://example.com/"
            )
        }
        guard known.count >= Self.maxKnown || known.insert(url.hashValue).inserted else { return }
        try output.put(url, meta: meta, line: line)
    }

    /// The absolute URL; nil if it is relative and the page's address is unknown.
    private func resolve(_ text: String) -> String? {
        if text.hasPrefix("http://") || text.hasPrefix("https://") { return text }
        if text.hasPrefix("//") { return "\(base?.scheme ?? "https"):\(text)" }
        guard let base else { return text.contains("://") ? text : nil }
        return URL(string: text, relativeTo: base)?.absoluteString
    }

    func finish() throws {
        if isEmpty { throw ListMistake("\(request.name) is a page without pictures.") }
    }
}

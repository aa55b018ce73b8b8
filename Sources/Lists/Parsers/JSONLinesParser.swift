internal import Core

/// JSON Lines: a string or an object on each line.
final class JSONLinesParser: ListParser {
    private let request: ListRequest
    private let path: JSONPath?
    private let output: ListOutput
    private var cutter = LineCutter()
    /// The member that had the URL of the first object.
    private var known: String?
    private var isEmpty = true

    init(request: ListRequest, _ output: ListOutput) throws {
        self.request = request
        self.output = output
        path = try request.path.map(JSONPath.init)
    }

    func feed(_ bytes: UnsafeRawBufferPointer) throws { try cutter.feed(bytes, read) }

    func finish() throws {
        try cutter.finish(read)
        if isEmpty { throw ListMistake("\(request.name) has no URLs.") }
    }

    private func read(_ line: UnsafeRawBufferPointer, _ number: Int) throws {
        guard line.contains(where: { $0 > 32 }) else { return }
        let isFirst = isEmpty
        isEmpty = false
        do {
            try JSONScanner.whole(line) { scanner in
                if scanner.next == UInt8(ascii: "\"") {
                    try output.put(try scanner.string(), line: number)
                } else {
                    try object(&scanner, number)
                }
            }
        } catch let error as JSONScanner.Invalid {
            let hint = isFirst ? " An object over several lines becomes one line by: jq -c . \(request.name)" : ""
            try output.refuse(number, "The line is no JSON: \(error.message).\(hint)")
        }
    }

    private func object(_ scanner: inout JSONScanner, _ number: Int) throws {
        guard scanner.next == UInt8(ascii: "{") else {
            _ = try scanner.value()
            return try output.refuse(number, "The line is neither a JSON object nor a string.")
        }
        var members: [ListMember] = []
        var urls: [String] = []
        var strings: [(name: String, text: String)] = []
        try scanner.object { name, scanner in
            if let path, path.first == name {
                let start = scanner.position
                try path.find(in: &scanner) { urls.append($0) }
                // An object or array that contains the URL is kept as a whole, since its other members may be needed.
                if !path.isOneName {
                    members.append(ListMember(name: name, json: scanner.text(of: start..<scanner.position)))
                }
                return
            }
            if path == nil, scanner.next == UInt8(ascii: "\"") {
                let start = scanner.position
                strings.append((name, try scanner.string()))
                members.append(ListMember(name: name, json: scanner.text(of: start..<scanner.position)))
            } else {
                members.append(ListMember(name: name, json: scanner.text(of: try scanner.value())))
            }
        }
        if path == nil {
            guard let chosen = choose(strings) else { return try output.refuse(number, withoutURL(strings, members)) }
            known = chosen.name
            urls = [chosen.text]
            members.removeAll { $0.name == chosen.name }
        } else if urls.isEmpty {
            return try output.refuse(number, withoutPath(members))
        }
        for url in urls { try output.put(url.trimmed, meta: members, line: number) }
    }

    // MARK: - The member of the URL

    private static let usual = ["url", "image_url", "image", "src", "link", "href"]

    private func choose(_ strings: [(name: String, text: String)]) -> (name: String, text: String)? {
        if let known, let match = strings.first(where: { $0.name == known }) { return match }
        let urls = strings.filter { $0.text.contains("://") }
        if urls.count == 1 { return urls[0] }
        let candidates = urls.isEmpty ? strings : urls
        for word in Self.usual {
            if let match = candidates.first(where: { $0.name.lowercased() == word }) { return match }
        }
        return nil
    }

    private func withoutURL(_ strings: [(name: String, text: String)], _ members: [ListMember]) -> String {
        let urls = strings.filter { $0.text.contains("://") }.map(\.name)
        if urls.count > 1 {
            return "Several members have URLs: \(Self.list(urls)). Name the one to fetch, such as --path \(urls[0])"
        }
        return
            "No member is a URL. The members are: \(Self.list(members.map(\.name))). Name the way to a deeper one with --path"
    }

    private func withoutPath(_ members: [ListMember]) -> String {
        let names = members.map(\.name)
        // The member may be there, and be empty.
        let question = names.contains(path?.first ?? "") ? "" : NearestWord.question(path?.first ?? "", among: names)
        return "There is no text at the path '\(URLCheck.shown(request.path ?? ""))'.\(question) The members are: "
            + Self.list(names) + "."
    }

    private static func list(_ names: [String]) -> String {
        names.isEmpty ? "none" : names.prefix(20).map { "'\(URLCheck.shown($0))'" }.joined(separator: ", ")
    }
}

/// A way through objects and arrays: `image.url`, `images[0].src`, `images[].src`; `$.` may stand before it.
struct JSONPath {
    private enum Step: Hashable {
        case name(String)
        case index(Int)
        case every
    }

    let first: String
    private let steps: [Step]

    var isOneName: Bool { steps.isEmpty }

    init(_ text: String) throws {
        var steps: [Step] = []
        for part in text.trimmingPrefix("$.").split(separator: ".", omittingEmptySubsequences: false) {
            let name = part.prefix { $0 != "[" }
            if !name.isEmpty { steps.append(.name(String(name))) }
            var rest = part.dropFirst(name.count)
            while !rest.isEmpty {
                guard rest.first == "[", let close = rest.firstIndex(of: "]") else { throw Self.mistake(text) }
                let inside = rest[rest.index(after: rest.startIndex)..<close]
                if inside.isEmpty || inside == "*" {
                    steps.append(.every)
                } else {
                    guard let index = Int(inside), index >= 0 else { throw Self.mistake(text) }
                    steps.append(.index(index))
                }
                rest = rest[rest.index(after: close)...]
            }
        }
        guard case .name(let first)? = steps.first, steps.count <= 16 else { throw Self.mistake(text) }
        self.first = first
        self.steps = Array(steps.dropFirst())
    }

    private static func mistake(_ text: String) -> ListMistake {
        ListMistake(
            "The path '\(URLCheck.shown(text))' is no path to a member. Write it as image.url, images[0].src or images[].src"
        )
    }

    /// Passes over the value of ``first`` and calls `body` with each text that the path leads to.
    func find(in scanner: inout JSONScanner, _ body: (String) -> Void) throws { try walk(steps[...], &scanner, body) }

    private func walk(_ steps: ArraySlice<Step>, _ scanner: inout JSONScanner, _ body: (String) -> Void) throws {
        let rest = steps.dropFirst()
        switch (steps.first, scanner.next) {
        case (nil, UInt8(ascii: "\"")): body(try scanner.string())
        case (.name(let wanted)?, UInt8(ascii: "{")):
            try scanner.object { name, scanner in
                if name == wanted { try walk(rest, &scanner, body) } else { _ = try scanner.value() }
            }
        case (.index(let wanted)?, UInt8(ascii: "[")):
            var index = 0
            try scanner.array { scanner in
                if index == wanted { try walk(rest, &scanner, body) } else { _ = try scanner.value() }
                index += 1
            }
        case (.every?, UInt8(ascii: "[")): try scanner.array { scanner in try walk(rest, &scanner, body) }
        default: _ = try scanner.value()
        }
    }
}

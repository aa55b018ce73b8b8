internal import FoundationEssentials

/// A command's request: one line of JSON before the picture.
struct CommandRequest: Encodable {
    let name: String
    let argument: String
    /// In pixels.
    let width: Int
    let height: Int
    var format = "png"

    func line() throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return try Array(encoder.encode(self)) + [UInt8(ascii: "\n")]
    }
}

/// A command's answer: one line of JSON, and then the picture.
enum CommandAnswer: Equatable {
    case picture([UInt8])
    case error(String)
    case nonsense

    private struct Line: Decodable {
        var ok: Bool?
        var error: String?
    }

    init(_ bytes: [UInt8]) {
        // Best effort: a line that is no JSON counts as `nonsense`.
        guard
            let end = bytes.prefix(65_536).firstIndex(of: UInt8(ascii: "\n"))
                ?? (bytes.count <= 65_536 ? bytes.count : nil),
            let line = try? JSONDecoder().decode(Line.self, from: Data(bytes[..<end]))
        else {
            self = .nonsense
            return
        }
        if let error = line.error {
            self = .error(error)
        } else {
            self = line.ok == true && end + 1 < bytes.count ? .picture(Array(bytes[(end + 1)...])) : .nonsense
        }
    }
}

/// A delegate program's answer: a line of JSON, and the bytes after it.
struct DelegateAnswer {
    struct Line: Decodable {
        var allow: Bool?
        var key: String?
        var url: String?
        var headers: [String: String]?
        var variants: String?
        var options: String?
        var priority: Int?
        var status: Int?
        var ok: Bool?
        var blacklist: Bool?
        var error: String?
    }

    let line: Line
    let bytes: [UInt8]

    /// Nil if the first line cannot be decoded.
    init?(_ output: [UInt8]) {
        let end = output.firstIndex(of: UInt8(ascii: "\n")) ?? output.count
        // Best effort: the caller reports an answer that cannot be decoded.
        guard let line = try? JSONDecoder().decode(Line.self, from: Data(output[..<end])) else { return nil }
        self.line = line
        bytes = Array(output[min(end + 1, output.count)...])
    }
}

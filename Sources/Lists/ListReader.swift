internal import Core

/// Reads a list of URLs of any kind, with bounded memory.
public enum ListReader {
    /// The bytes by which a list is recognised.
    private static let sampleSize = 1 << 16

    /// - Parameters:
    ///   - onFormat: called once, with the list's format, and a sentence if the format may be wrong.
    ///   - sink: called for each URL and each mistake; an error that it throws ends the reading.
    /// - Throws: ``ListMistake`` if the list cannot be read in its format.
    public static func read(
        _ input: ListInput, _ request: ListRequest, onFormat: (ListFormat, String?) -> Void,
        _ sink: @escaping (ListEvent) throws -> Void,
    ) throws {
        var sample: [UInt8] = []
        var parser: (any ListParser)?
        func begin(isCut: Bool) throws {
            let started = try sample.withUnsafeBytes { bytes in
                let finding = try ListDetector(sample: bytes, request: request, isCut: isCut).find()
                onFormat(finding.format, finding.doubt)
                let parser = try Self.parser(
                    finding, request, ListOutput(sink), isConverted: input.wasConverted, isUTF8: isUTF8(bytes))
                try parser.feed(bytes)
                return parser
            }
            parser = started
            sample = []
        }
        var goesOn = true
        while goesOn {
            goesOn = try input.read { bytes in
                if let parser { return try parser.feed(bytes) }
                sample.append(contentsOf: bytes)
                if sample.count >= sampleSize { try begin(isCut: true) }
            }
        }
        if parser == nil { try begin(isCut: false) }
        try parser?.finish()
    }

    static func parser(
        _ finding: ListDetector.Finding, _ request: ListRequest, _ output: ListOutput, isConverted: Bool, isUTF8: Bool,
    ) throws -> any ListParser {
        switch finding.format {
        case .text: return TextListParser(output)
        case .csv, .tsv: return CSVParser(separator: finding.separator, request: request, output)
        case .jsonl: return try JSONLinesParser(request: request, output)
        case .sitemap:
            return try XMLPushParser(
                SitemapHandler(request: request, output), name: request.name, isConverted: isConverted)
        case .feed:
            return try XMLPushParser(
                FeedHandler(request: request, output), name: request.name, isConverted: isConverted)
        case .html: return try HTMLPushParser(HTMLHandler(request: request, output), name: request.name, isUTF8: isUTF8)
        }
    }

    /// Whether the bytes are UTF-8, as far as they go.
    static func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // A character may be cut at the end.
        (0...3).contains { cut in
            bytes.count >= cut && String(validating: bytes.dropLast(cut), as: UTF8.self) != nil
        }
    }
}

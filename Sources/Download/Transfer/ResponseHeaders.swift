/// The fields of one response that the worker uses.
struct ResponseHeaders {
    private var lengths: [String] = [] { didSet { framing = BodyFraming(lengths: lengths, encodings: encodings) } }
    private var encodings: [String] = [] { didSet { framing = BodyFraming(lengths: lengths, encodings: encodings) } }
    /// How the body's end is marked. Kept, since it is asked for several times in a transfer.
    private(set) var framing = BodyFraming.untilClose
    /// Raw bytes: origins send Latin-1 and UTF-8 here.
    private(set) var location: [UInt8]?
    private(set) var retryAfter: String?
    private(set) var etag: String?
    private(set) var lastModified: String?
    private(set) var contentType: String?
    private(set) var cacheControl: String?
    private(set) var expires: String?
    private(set) var date: String?
    private(set) var age: String?
    private(set) var robots: String?
    private(set) var vary: String?
    private(set) var contentEncoding: String?
    private(set) var contentRange: String?
    private(set) var acceptRanges: String?

    /// Reads one header line; lines without a needed field are skipped.
    mutating func absorb(_ line: UnsafeRawBufferPointer) {
        guard let colon = line.firstIndex(of: 0x3A), let field = Field(name: line[..<colon]) else { return }
        let value = Self.value(line[(colon + 1)...])
        let text = Self.text(value)
        switch field {
        case .contentLength: lengths.append(Self.framing(line[(colon + 1)...]))
        case .transferEncoding: encodings.append(Self.framing(line[(colon + 1)...]))
        // The first one counts, as in curl and browsers.
        case .location: location = location ?? value.filter { $0 == 0x20 || Self.isVisible($0) }
        case .retryAfter: retryAfter = text
        case .etag: etag = text
        case .lastModified: lastModified = text
        case .contentType: contentType = text
        // A list may come in several lines (RFC 9110, section 5.3).
        case .cacheControl: cacheControl = cacheControl.map { $0 + ", " + text } ?? text
        // Lines are kept apart, since each applies to the robot that it names.
        case .robots: robots = robots.map { $0 + "\n" + text } ?? text
        // Two `Expires` headers count as an invalid one (RFC 9111, section 5.3).
        case .expires: expires = expires.map { $0 + ", " + text } ?? text
        case .date: date = text
        // The first one counts, of lines as of list members (RFC 9111, section 5.1).
        case .age: age = age ?? text
        case .vary: vary = vary.map { $0 + ", " + text } ?? text
        case .contentEncoding: contentEncoding = contentEncoding.map { $0 + ", " + text } ?? text
        case .contentRange: contentRange = text
        case .acceptRanges: acceptRanges = text
        }
    }

    private enum Field: String, CaseIterable {
        case contentLength = "content-length"
        case transferEncoding = "transfer-encoding"
        case location
        case retryAfter = "retry-after"
        case etag
        case lastModified = "last-modified"
        case contentType = "content-type"
        case cacheControl = "cache-control"
        case expires
        case date
        case age
        case robots = "x-robots-tag"
        case vary
        case contentEncoding = "content-encoding"
        case contentRange = "content-range"
        case acceptRanges = "accept-ranges"

        /// The fields whose names have as many bytes as the place in this list. Each response has a dozen lines, so
        /// no text is made of their names.
        private static let byLength = (0...(allCases.map(\.rawValue.utf8.count).max() ?? 0)).map { length in
            allCases.filter { $0.rawValue.utf8.count == length }
        }

        init?(name: Slice<UnsafeRawBufferPointer>) {
            guard name.count < Self.byLength.count else { return nil }
            for field in Self.byLength[name.count] {
                // Setting bit 5 makes ASCII letters lower case and keeps the hyphen.
                if name.elementsEqual(field.rawValue.utf8, by: { $0 | 0x20 == $1 }) {
                    self = field
                    return
                }
            }
            return nil
        }
    }

    /// Length of the body before content decoding, if announced.
    var contentLength: Int64? {
        if case .length(let bytes) = framing { bytes } else { nil }
    }

    /// Length of the body after content decoding, if announced.
    var decodedLength: Int64? { contentEncoding == nil ? contentLength : nil }

    /// The validator for assembling parts of a body; nil without a strong one.
    var strongETag: String? {
        guard contentEncoding == nil, acceptRanges?.lowercased() != "none", let etag, etag.hasPrefix("\"") else {
            return nil
        }
        return etag
    }

    /// The value without surrounding spaces and the line's end.
    private static func value(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes.drop { !isVisible($0) }
        while let last = bytes.last, !isVisible(last) { bytes = bytes.dropLast() }
        return bytes
    }

    /// The value as it was sent, without spaces around it: a control character makes the body's end unknown.
    private static func framing(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        func isSpace(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0D, 0x20].contains(byte) }
        var bytes = bytes.drop(while: isSpace)
        while let last = bytes.last, isSpace(last) { bytes = bytes.dropLast() }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The value without control characters.
    private static func text(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        if bytes.allSatisfy({ $0 == 0x20 || isVisible($0) }) {
            return String(decoding: UnsafeRawBufferPointer(rebasing: bytes), as: UTF8.self)
        }
        return String(decoding: bytes.filter { $0 == 0x20 || isVisible($0) }, as: UTF8.self)
    }

    private static func isVisible(_ byte: UInt8) -> Bool { byte > 0x20 && byte != 0x7F }
}

internal import CXML

/// Reads a small XML document, as S3 answers with. It knows no entities but XML's own, no DTD and no network, and it
/// gives up on documents that are larger or deeper than any answer.
///
/// See https://gnome.pages.gitlab.gnome.org/libxml2/html/parser.html
final class XMLReader {
    /// A listing of 1,000 keys of 1,024 bytes, each of them encoded, has some 3.5 MB.
    static let maxBytes = 8 << 20
    private static let maxDepth = 16
    private static let maxElements = 50_000

    private var open: [XMLElement] = []
    private var texts: [[UInt8]] = []
    private var root: XMLElement?
    private var count = 0
    private var isRefused = false
    /// Set while it reads.
    private var context: xmlParserCtxtPtr?

    private init() {}

    /// - Returns: the outermost element; nil for bytes that are not XML of this kind.
    static func read(_ bytes: [UInt8]) -> XMLElement? {
        guard !bytes.isEmpty, bytes.count <= maxBytes else { return nil }
        let reader = XMLReader()
        return reader.parse(bytes) && !reader.isRefused ? reader.root : nil
    }

    private func parse(_ bytes: [UInt8]) -> Bool {
        var sax = Self.callbacks()
        let pointer = Unmanaged.passUnretained(self).toOpaque()
        guard let context = xmlCreatePushParserCtxt(&sax, pointer, nil, 0, nil) else { return false }
        self.context = context
        defer {
            self.context = nil
            xmlFreeParserCtxt(context)
        }
        xmlCtxtUseOptions(context, CInt(XML_PARSE_NONET.rawValue))
        let code = bytes.withUnsafeBytes { bytes in
            xmlParseChunk(context, bytes.bindMemory(to: CChar.self).baseAddress, CInt(bytes.count), 1)
        }
        return code == 0 && context.pointee.wellFormed == 1
    }

    private static func of(_ pointer: UnsafeMutableRawPointer?) -> XMLReader? {
        pointer.map { Unmanaged<XMLReader>.fromOpaque($0).takeUnretainedValue() }
    }

    private static func callbacks() -> xmlSAXHandler {
        var sax = xmlSAXHandler()
        sax.initialized = cxml_sax2_magic()
        // Prints no errors: the result of parsing has them.
        sax.serror = { _, _ in }
        sax.startElementNs = { reader, name, _, _, _, _, _, _, _ in
            guard let name else { return }
            XMLReader.of(reader)?.start(String(cString: name))
        }
        sax.endElementNs = { reader, _, _, _ in XMLReader.of(reader)?.end() }
        let text: charactersSAXFunc = { reader, bytes, count in
            XMLReader.of(reader)?.add(UnsafeRawBufferPointer(start: bytes, count: Int(count)))
        }
        sax.characters = text
        sax.cdataBlock = text
        // No answer of S3 has a document type, and entities can only be declared in one.
        sax.internalSubset = { reader, _, _, _ in XMLReader.of(reader)?.refuse() }
        return sax
    }

    private func refuse() {
        isRefused = true
        xmlStopParser(context)
    }

    private func start(_ name: String) {
        count += 1
        guard !isRefused, count <= Self.maxElements, open.count < Self.maxDepth else { return refuse() }
        open.append(XMLElement(name: name))
        texts.append([])
    }

    private func add(_ bytes: UnsafeRawBufferPointer) {
        guard !texts.isEmpty else { return }
        texts[texts.count - 1].append(contentsOf: bytes)
    }

    private func end() {
        guard var element = open.popLast(), let text = texts.popLast() else { return }
        element.text = String(decoding: text, as: UTF8.self)
        if open.isEmpty { root = element } else { open[open.count - 1].children.append(element) }
    }
}

/// An element of an answer, by its name without a prefix.
struct XMLElement {
    let name: String
    /// The text between its tags, without the text of its children.
    var text = ""
    var children: [XMLElement] = []

    /// The text of the first child of that name.
    subscript(name: String) -> String? { children.first { $0.name == name }?.text }

    /// The first element that these names lead to.
    func first(_ path: String...) -> XMLElement? {
        path.reduce(self as XMLElement?) { element, name in element?.children.first { $0.name == name } }
    }

    func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    /// Text as it stands in XML.
    static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }
}

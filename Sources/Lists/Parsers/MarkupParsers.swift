internal import CXML

/// Gets the elements and texts that the push parsers for XML and HTML report.
protocol MarkupHandler: AnyObject {
    func start(_ element: MarkupElement, line: Int) throws
    func text(_ bytes: UnsafeRawBufferPointer)
    func end(_ name: String, space: String) throws
    /// After the last byte.
    func finish() throws
}

/// An element with its attributes, by their names without prefixes.
struct MarkupElement {
    let name: String
    /// The URI of its namespace; empty without one.
    let space: String
    let attributes: [(name: String, value: String)]
    /// The URIs of the namespaces that it declares.
    var declaredSpaces: [String] = []

    subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }
}

private typealias XMLText = UnsafePointer<xmlChar>

private func string(_ text: XMLText?) -> String { text.map { String(cString: $0) } ?? "" }

/// A handler, and the error that stops the parser that calls it from C.
private final class HandlerBox {
    let handler: any MarkupHandler
    var error: (any Error)?
    /// Set right after it is made.
    var context: xmlParserCtxtPtr?

    init(_ handler: any MarkupHandler) { self.handler = handler }

    var line: Int { context?.pointee.input.map { Int($0.pointee.line) } ?? 0 }

    static func of(_ pointer: UnsafeMutableRawPointer?) -> HandlerBox? {
        pointer.map { Unmanaged<HandlerBox>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Calls the handler, unless an error has stopped it.
    func call(_ body: () throws -> Void) {
        guard error == nil else { return }
        do {
            try body()
        } catch {
            self.error = error
            xmlStopParser(context)
        }
    }
}

/// XML, by libxml2's push parser. It expands no entities, reads no DTD and uses no network: a document that declares
/// entities is refused when the first declaration is read.
final class XMLPushParser: ListParser {
    private let box: HandlerBox
    private let name: String
    private let context: xmlParserCtxtPtr

    /// - Parameter isConverted: whether the bytes are UTF-8, whatever encoding the document declares.
    init(_ handler: any MarkupHandler, name: String, isConverted: Bool) throws {
        box = HandlerBox(handler)
        self.name = name
        var sax = Self.callbacks()
        guard let context = xmlCreatePushParserCtxt(&sax, Unmanaged.passUnretained(box).toOpaque(), nil, 0, nil) else {
            throw ListMistake("There is no memory to read \(name).")
        }
        self.context = context
        box.context = context
        let encoding = isConverted ? XML_PARSE_IGNORE_ENC.rawValue : 0
        xmlCtxtUseOptions(context, CInt(XML_PARSE_NONET.rawValue | encoding))
    }

    deinit { xmlFreeParserCtxt(context) }

    func feed(_ bytes: UnsafeRawBufferPointer) throws { try parse(bytes, isLast: false) }

    func finish() throws {
        try parse(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
        try box.handler.finish()
    }

    private func parse(_ bytes: UnsafeRawBufferPointer, isLast: Bool) throws {
        let code = xmlParseChunk(
            context, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(bytes.count), isLast ? 1 : 0)
        if let error = box.error { throw error }
        guard code == 0 || context.pointee.wellFormed == 1 else {
            throw ListMistake(line: box.line, "\(name) is broken XML: \(Self.reason(code)).")
        }
    }

    /// libxml2's own sentences are about its parser, and quote the document.
    private static func reason(_ code: CInt) -> String {
        switch xmlParserErrors(rawValue: UInt32(bitPattern: code)) {
        case XML_ERR_DOCUMENT_EMPTY: "it has no element"
        case XML_ERR_DOCUMENT_END: "it ends before its first element is closed, or goes on behind it"
        case XML_ERR_TAG_NAME_MISMATCH: "an end tag does not match the element that is open there"
        case XML_ERR_TAG_NOT_FINISHED, XML_ERR_GT_REQUIRED, XML_ERR_LTSLASH_REQUIRED:
            "a tag is not closed with '>', or has an attribute without quotes"
        case XML_ERR_UNDECLARED_ENTITY, XML_ERR_ENTITYREF_NO_NAME, XML_ERR_ENTITYREF_SEMICOL_MISSING:
            "'&' begins no known entity; in a URL it is written as &amp;"
        case XML_ERR_ATTRIBUTE_NOT_STARTED, XML_ERR_ATTRIBUTE_NOT_FINISHED, XML_ERR_ATTRIBUTE_WITHOUT_VALUE,
            XML_ERR_ATTRIBUTE_REDEFINED, XML_ERR_LT_IN_ATTRIBUTE, XML_ERR_SPACE_REQUIRED:
            "an attribute has no value in quotes, or is given twice"
        case XML_ERR_INVALID_CHAR, XML_ERR_INVALID_ENCODING, XML_ERR_UNSUPPORTED_ENCODING, XML_ERR_UNKNOWN_ENCODING:
            "a character is not of its encoding, or not allowed in XML"
        case XML_ERR_NAME_REQUIRED: "'<' begins no tag; in text it is written as &lt;"
        case XML_ERR_CDATA_NOT_FINISHED, XML_ERR_COMMENT_NOT_FINISHED, XML_ERR_PI_NOT_FINISHED:
            "a comment or a section is not closed"
        default: "it can't be read from there on"
        }
    }

    private static func callbacks() -> xmlSAXHandler {
        var sax = xmlSAXHandler()
        sax.initialized = cxml_sax2_magic()
        sax.serror = { _, _ in }  // The last error is in the context.
        sax.startElementNs = { box, name, _, space, spaceCount, spaces, count, _, attributes in
            guard let box = HandlerBox.of(box) else { return }
            box.call {
                var element = MarkupElement(
                    name: string(name), space: string(space),
                    attributes: XMLPushParser.attributes(attributes, Int(count)))
                element.declaredSpaces = (0..<Int(spaceCount)).map { string(spaces?[2 * $0 + 1]) }
                try box.handler.start(element, line: box.line)
            }
        }
        sax.endElementNs = { box, name, _, space in
            guard let box = HandlerBox.of(box) else { return }
            box.call { try box.handler.end(string(name), space: string(space)) }
        }
        let text: charactersSAXFunc = { box, bytes, count in
            guard let box = HandlerBox.of(box) else { return }
            box.call { box.handler.text(UnsafeRawBufferPointer(start: bytes, count: Int(count))) }
        }
        sax.characters = text
        sax.cdataBlock = text
        sax.entityDecl = { box, _, _, _, _, _ in XMLPushParser.refuseDeclarations(HandlerBox.of(box)) }
        sax.unparsedEntityDecl = { box, _, _, _, _ in XMLPushParser.refuseDeclarations(HandlerBox.of(box)) }
        sax.attributeDecl = { box, _, _, _, _, _, values in
            xmlFreeEnumeration(values)
            XMLPushParser.refuseDeclarations(HandlerBox.of(box))
        }
        return sax
    }

    private static func refuseDeclarations(_ box: HandlerBox?) {
        box?.call {
            throw ListMistake(
                line: box?.line,
                "The document declares entities or attributes of its own (<!DOCTYPE … [), which is refused.")
        }
    }

    /// Five pointers each: name, prefix, namespace, and the beginning and end of the value.
    private static func attributes(
        _ pointers: UnsafeMutablePointer<XMLText?>?, _ count: Int,
    ) -> [(name: String, value: String)] {
        guard let pointers else { return [] }
        return (0..<count).map { index in
            let at = pointers + 5 * index
            guard let start = at[3], let end = at[4] else { return (string(at[0]), "") }
            let value = String(decoding: UnsafeBufferPointer(start: start, count: end - start), as: UTF8.self)
            // libxml2 does not expand entities here, so it delivers an ampersand as `&#38;`.
            return (string(at[0]), value.contains("&#38;") ? value.replacing("&#38;", with: "&") : value)
        }
    }
}

/// HTML, by libxml2's push parser, which repairs invalid markup.
final class HTMLPushParser: ListParser {
    /// Maximum depth of open elements, which libxml2 does not limit.
    private static let maxDepth: CInt = 10_000
    /// Maximum bytes that the parser keeps until it finds where something ends: a comment, a value, a text.
    private static let longestPart = 8 << 20

    private let box: HandlerBox
    private let context: htmlParserCtxtPtr

    /// - Parameter isUTF8: whether the bytes are UTF-8, whatever encoding the page declares.
    init(_ handler: any MarkupHandler, name: String, isUTF8: Bool) throws {
        box = HandlerBox(handler)
        var sax = xmlSAXHandler()
        sax.initialized = cxml_sax2_magic()
        sax.serror = { _, _ in }  // Pages are full of mistakes, and browsers mend them in silence.
        sax.startElement = { box, name, attributes in
            guard let box = HandlerBox.of(box) else { return }
            box.call {
                guard box.context?.pointee.nameNr ?? 0 <= HTMLPushParser.maxDepth else {
                    throw ListMistake(
                        line: box.line, "More than \(HTMLPushParser.maxDepth) elements are nested, the most for a page."
                    )
                }
                let element = MarkupElement(
                    name: string(name), space: "", attributes: HTMLPushParser.attributes(attributes))
                try box.handler.start(element, line: box.line)
            }
        }
        let encoding = isUTF8 ? XML_CHAR_ENCODING_UTF8 : XML_CHAR_ENCODING_NONE
        let pointer = Unmanaged.passUnretained(box).toOpaque()
        guard let context = htmlCreatePushParserCtxt(&sax, pointer, nil, 0, nil, encoding) else {
            throw ListMistake("There is no memory to read \(name).")
        }
        self.context = context
        box.context = context
        htmlCtxtUseOptions(
            context, CInt(HTML_PARSE_NONET.rawValue | (isUTF8 ? HTML_PARSE_IGNORE_ENC.rawValue : 0)))
    }

    deinit { htmlFreeParserCtxt(context) }

    func feed(_ bytes: UnsafeRawBufferPointer) throws {
        // libxml2 2.9 resumes its search for a tag's end here. Reset, since after a cut value it would find no end.
        context.pointee.checkIndex = 0
        htmlParseChunk(context, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(bytes.count), 0)
        if let error = box.error { throw error }
        guard let input = context.pointee.input else { return }
        // libxml2 2.9 frees parsed input only if a part ends with these bytes; otherwise it keeps a page of long texts in
        // memory.
        cxml_shrink(input)
        guard let end = input.pointee.end, let start = input.pointee.cur else { return }
        guard end - start <= Self.longestPart else {
            throw ListMistake(line: box.line, "The comment, value or text that begins here has more than 8 MiB.")
        }
    }

    func finish() throws {
        htmlParseChunk(context, nil, 0, 1)
        if let error = box.error { throw error }
        try box.handler.finish()
    }

    /// Names and values in turn, up to a nil.
    private static func attributes(
        _ pointers: UnsafeMutablePointer<XMLText?>?,
    ) -> [(name: String, value: String)] {
        guard let pointers else { return [] }
        var attributes: [(name: String, value: String)] = []
        var index = 0
        while let name = pointers[index] {
            attributes.append((string(name), string(pointers[index + 1])))
            index += 2
        }
        return attributes
    }
}

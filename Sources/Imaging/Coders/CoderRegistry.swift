/// Who reads which format. The coder that was registered last is asked first, and the libraries' own formats last.
///
/// A value: it is made once at a program's start, and given to the worker and to its helpers alike.
public struct CoderRegistry: Sendable {
    /// A coder in the list, as `worker doctor` shows it.
    public struct Listing: Hashable, Sendable {
        /// The format's name.
        public let name: String
        public let mediaType: String
        /// Without the dot.
        public let fileExtension: String
        /// Who decodes it: `vips 8.14.1`, or the coder's own version.
        public let version: String
    }

    private var coders: [Coder]

    /// The built-in coders: libvips' formats, with giflib and libwebp for what moves, and our own for BMP.
    public init() {
        coders = ImageFormat.allCases.filter { $0 != .bmp }.map(Coder.library) + [.registered(BMPCoder())]
    }

    /// Puts a coder before all others.
    public mutating func register(_ coder: some ImageCoder) {
        coders.append(.registered(coder))
    }

    /// In the order they are asked.
    public var listing: [Listing] { coders.reversed().map(\.listing) }

    /// What else than a source and a spec decides a rendition's bytes; part of the identity a cache files it under.
    public var version: String {
        let registered = coders.compactMap { coder in
            if case .registered(let coder) = coder { "\(coder.name) \(coder.version)" } else { nil }
        }
        return ([ImagingRuntime.coderVersion] + registered).joined(separator: " ")
    }

    /// The names of the coders that programs have registered, and that variants may ask for; sorted.
    public var registeredNames: [String] {
        coders.compactMap { if case .registered(let coder) = $0, !(coder is BMPCoder) { coder.name } else { nil } }
            .sorted()
    }

    /// The one registered last under this name.
    func coder(named name: String) -> (any ImageCoder)? {
        for case .registered(let coder) in coders.reversed() where coder.name == name { return coder }
        return nil
    }

    /// The first that knows these bytes, or nil.
    func coder(for prefix: UnsafeRawBufferPointer) -> Coder? {
        coders.last { $0.sniff(prefix) }
    }

    /// The bytes that the slowest of them needs to say no.
    var signatureLength: Int {
        coders.reduce(16) { longest, coder in
            if case .registered(let coder) = coder { max(longest, coder.signatureLength) } else { longest }
        }
    }
}

/// One place in the registry.
enum Coder: Sendable {
    /// libvips for stills; giflib and libwebp for what moves.
    case library(ImageFormat)
    case registered(any ImageCoder)

    var name: String {
        switch self {
        case .library(let format): format.rawValue
        case .registered(let coder): coder.name
        }
    }

    func sniff(_ prefix: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .library(let format): ImageFormat.sniff(prefix) == format
        case .registered(let coder): coder.sniff(prefix)
        }
    }

    fileprivate var listing: CoderRegistry.Listing {
        switch self {
        case .library(let format):
            CoderRegistry.Listing(
                name: format.rawValue, mediaType: format.mediaType, fileExtension: format.fileExtension,
                version: Self.libraries(of: format))
        case .registered(let coder):
            CoderRegistry.Listing(
                name: coder.name, mediaType: coder.mediaType, fileExtension: coder.fileExtension,
                version: coder.version)
        }
    }

    private static func libraries(of format: ImageFormat) -> String {
        let names = format == .gif ? ["vips", "gif"] : format == .webp ? ["vips", "webp"] : ["vips"]
        let versions = ImagingRuntime.versions
        return names.compactMap { name in versions.first { $0.name == name }.map { "\(name) \($0.version)" } }
            .joined(separator: ", ")
    }
}

import CGIF
internal import Core
import ImageFiles

/// giflib's encoder, record by record, directly to an output.
///
/// The only owner of its handle. https://giflib.sourceforge.net/gif_lib.html
final class GIFWriter {
    /// The output of the callback; giflib has its address.
    private final class Output {
        private static let maxBytes = 1 << 16
        private let put: ([UInt8]) throws -> Void
        private var held: [UInt8] = []
        /// The first error; nothing is written after it.
        var error: (any Error)?

        init(_ put: @escaping ([UInt8]) throws -> Void) { self.put = put }

        func write(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
            held.append(contentsOf: bytes)
            if held.count >= Self.maxBytes { flush() }
            return error == nil ? bytes.count : 0
        }

        func flush() {
            defer { held.removeAll(keepingCapacity: true) }
            guard error == nil else { return }
            do {
                try put(held)
            } catch {
                self.error = error
            }
        }
    }

    /// A frame's duration and disposal.
    struct Control {
        /// In hundredths of a second, up to 65,535.
        var delay: Int
        /// Whether the frame's rectangle becomes transparent before the next frame.
        var isCleared: Bool
        var transparent: Int?
    }

    private let output: Output
    /// Nil once it is closed.
    private var handle: UnsafeMutablePointer<GifFileType>?

    /// - Parameter put: gets the file piece by piece.
    init(_ put: @escaping ([UInt8]) throws -> Void) throws(Failure) {
        output = Output(put)
        handle = EGifOpen(
            Unmanaged.passUnretained(output).toOpaque(),
            { file, bytes, count in
                guard let file, let bytes, let data = file.pointee.UserData else { return 0 }
                let output = Unmanaged<Output>.fromOpaque(data).takeUnretainedValue()
                return CInt(output.write(UnsafeBufferPointer(start: bytes, count: Int(count))))
            }, nil)
        guard let handle else { throw failure() }
        EGifSetGifVersion(handle, true)
    }

    deinit { close() }

    /// Writes the records before all frames.
    ///
    /// - Parameter loopCount: how often it plays; 0 means for ever, 1 is the meaning of a file without a count.
    func begin(_ size: PixelSize, _ colours: [Pixel], loopCount: Int) throws(Failure) {
        let map = try ColourMap(colours)
        let depth = CInt(GifBitSize(CInt(colours.count)))
        try call { EGifPutScreenDesc($0, CInt(size.width), CInt(size.height), depth, 0, map.object) }
        // The file counts the repetitions after the first time.
        if loopCount != 1 { try putLoop(min(max(0, loopCount - 1), 65_535)) }
    }

    private func putLoop(_ count: Int) throws(Failure) {
        let block: [UInt8] = [1, UInt8(count & 0xFF), UInt8(count >> 8)]
        try putApplication("NETSCAPE2.0")
        try call { EGifPutExtensionBlock($0, CInt(block.count), block) }
        try call { EGifPutExtensionTrailer($0) }
    }

    private func putApplication(_ name: String) throws(Failure) {
        let name = Array(name.utf8)
        try call { EGifPutExtensionLeader($0, APPLICATION_EXT_FUNC_CODE) }
        try call { EGifPutExtensionBlock($0, CInt(name.count), name) }
    }

    /// Writes a comment, after the beginning and before a frame.
    func comment(_ text: String) throws(Failure) {
        try call { EGifPutComment($0, text) }
    }

    /// Writes an XMP packet at the same place, unchanged and not cut into blocks. Readers take the packet's letters for
    /// lengths of blocks, and the trailer after the packet leads them to the trailer's end. A zero in a packet would
    /// end the blocks there, so a packet with a zero is left out.
    ///
    /// XMP Specification, part 3, section 1.1.2.
    func xmp(_ packet: [UInt8]) throws(Failure) {
        guard !packet.contains(0) else { return }
        try putApplication("XMP DataXMP")
        let end: [UInt8] = [1] + (0...255).reversed() + [0]
        let bytes = packet + end
        guard bytes.withUnsafeBufferPointer(output.write) == bytes.count else { throw failure() }
    }

    /// Begins a frame; its rows follow.
    ///
    /// - Parameter colours: nil for the file's palette.
    func frame(_ rectangle: PixelRectangle, _ colours: [Pixel]?, _ control: Control) throws(Failure) {
        try put(control)
        let map: ColourMap? = if let colours { try ColourMap(colours) } else { nil }
        try call {
            EGifPutImageDesc(
                $0, CInt(rectangle.left), CInt(rectangle.top), CInt(rectangle.width), CInt(rectangle.height), false,
                map?.object)
        }
    }

    private func put(_ control: Control) throws(Failure) {
        var block = GraphicsControlBlock(
            DisposalMode: control.isCleared ? DISPOSE_BACKGROUND : DISPOSE_DO_NOT, UserInputFlag: false,
            DelayTime: CInt(control.delay), TransparentColor: control.transparent.map(CInt.init) ?? NO_TRANSPARENT_COLOR
        )
        var bytes = [UInt8](repeating: 0, count: 4)
        let count = EGifGCBToExtension(&block, &bytes)
        try call { EGifPutExtension($0, GRAPHICS_EXT_FUNC_CODE, CInt(count), bytes) }
    }

    func row(_ indices: UnsafeMutableBufferPointer<UInt8>) throws(Failure) {
        try call { EGifPutLine($0, indices.baseAddress, CInt(indices.count)) }
    }

    /// Writes the trailer and the buffered bytes.
    func finish() throws(Failure) {
        close()
        output.flush()
        if output.error != nil { throw failure() }
    }

    private func close() {
        // The output knows whether the trailer could be written.
        if let handle { EGifCloseFile(handle, nil) }
        handle = nil
    }

    private func call(_ body: (UnsafeMutablePointer<GifFileType>) -> CInt) throws(Failure) {
        guard let handle, body(handle) == GIF_OK, output.error == nil else { throw failure() }
    }

    private func failure() -> Failure {
        if let error = output.error {
            return Failure(.encode, "The GIF could not be written: \(error)")
        }
        let reason = handle.flatMap { GifErrorString($0.pointee.Error) }.map { String(cString: $0) }
        return Failure(.encode, "giflib could not encode the GIF: \(reason ?? "it gave no reason")")
    }
}

/// giflib's own form of a palette; giflib copies it.
private final class ColourMap {
    let object: UnsafeMutablePointer<ColorMapObject>

    /// - Parameter colours: their number must be a power of two, 2 to 256.
    init(_ colours: [Pixel]) throws(Failure) {
        let entries = colours.map {
            GifColorType(Red: UInt8($0.red), Green: UInt8($0.green), Blue: UInt8($0.blue))
        }
        guard let object = GifMakeMapObject(CInt(entries.count), entries) else {
            throw Failure(.encode, "giflib refuses a palette of \(entries.count) colours.")
        }
        self.object = object
    }

    deinit { GifFreeMapObject(object) }
}

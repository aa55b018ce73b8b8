import CGIF
internal import Core
import ImageFiles

/// giflib's decoder, record by record, over bytes in memory.
///
/// The only owner of its handle. `DGifGetImageDesc` and `DGifSlurp` are not used, since they keep data of every frame.
/// https://giflib.sourceforge.net/gif_lib.html
final class GIFReader {
    enum Record {
        case image, `extension`, end
    }

    /// The input of the callback; giflib has its address.
    private final class Input {
        let bytes: UnsafeRawBufferPointer
        var offset = 0
        var isExhausted = false

        init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

        func read(into target: UnsafeMutablePointer<GifByteType>, _ wanted: Int) -> Int {
            let count = min(wanted, bytes.count - offset)
            if count < wanted { isExhausted = true }
            guard count > 0, let start = bytes.baseAddress else { return 0 }
            UnsafeMutableRawPointer(target).copyMemory(from: start + offset, byteCount: count)
            offset += count
            return count
        }
    }

    private let input: Input
    private let handle: UnsafeMutablePointer<GifFileType>

    /// - Parameter bytes: must stay valid as long as the reader is used.
    init(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
        input = Input(bytes)
        var code: CInt = 0
        let opened = DGifOpen(
            Unmanaged.passUnretained(input).toOpaque(),
            { file, target, count in
                guard let file, let target, let data = file.pointee.UserData else { return 0 }
                return CInt(Unmanaged<Input>.fromOpaque(data).takeUnretainedValue().read(into: target, Int(count)))
            }, &code)
        guard let opened else {
            throw Self.failure("The GIF has no usable header", code, isExhausted: input.isExhausted)
        }
        handle = opened
    }

    deinit {
        // It fails only if the handle was not open for reading.
        DGifCloseFile(handle, nil)
    }

    /// The next record. A missing trailer, and bytes that are no record, end the file, as in browsers.
    func record() -> Record {
        var type = UNDEFINED_RECORD_TYPE
        guard DGifGetRecordType(handle, &type) == GIF_OK else { return .end }
        switch type {
        case IMAGE_DESC_RECORD_TYPE: return .image
        case EXTENSION_RECORD_TYPE: return .extension
        default: return .end
        }
    }

    /// Reads a whole extension, and returns its data if it is a graphic control.
    func graphicControl() throws(Failure) -> GraphicsControlBlock? {
        var code: CInt = 0
        var data: UnsafeMutablePointer<GifByteType>?
        try call("An extension of the GIF can't be read") { DGifGetExtension(handle, &code, &data) }
        var control: GraphicsControlBlock?
        if code == GRAPHICS_EXT_FUNC_CODE, let data {
            var block = GraphicsControlBlock()
            // The first byte is the length. An extension of another length than 4 is no graphic control, and has no
            // effect.
            if DGifExtensionToGCB(Int(data.pointee), data + 1, &block) == GIF_OK { control = block }
        }
        while data != nil { try call("An extension of the GIF can't be read") { DGifGetExtensionNext(handle, &data) } }
        return control
    }

    /// Reads the descriptor of an image; its rows follow.
    func imageHeader() throws(Failure) -> (rectangle: PixelRectangle, isInterlaced: Bool) {
        try call("A frame of the GIF has no usable header") { DGifGetImageHeader(handle) }
        let image = handle.pointee.Image
        let rectangle = PixelRectangle(
            left: Int(image.Left), top: Int(image.Top), width: Int(image.Width), height: Int(image.Height))
        return (rectangle, image.Interlace)
    }

    /// The next row of the image in the order of the file, as indices into its colours.
    func row(into row: UnsafeMutableBufferPointer<UInt8>) throws(Failure) {
        try call("A frame of the GIF can't be decoded") { DGifGetLine(handle, row.baseAddress, CInt(row.count)) }
    }

    /// Skips the data of an image without pixels.
    func skipImage() throws(Failure) {
        var data: UnsafeMutablePointer<GifByteType>?
        repeat { try call("A frame of the GIF can't be read") { DGifGetCodeNext(handle, &data) } } while data != nil
    }

    /// The colours of the image whose header was read: its own, otherwise those of the file, otherwise black and white,
    /// as libvips assumes too.
    func colours() -> [Pixel] {
        guard let map = handle.pointee.Image.ColorMap ?? handle.pointee.SColorMap, let colours = map.pointee.Colors
        else {
            return [Pixel(red: 0, green: 0, blue: 0), Pixel(red: 255, green: 255, blue: 255)]
        }
        return UnsafeBufferPointer(start: colours, count: Int(map.pointee.ColorCount)).map {
            Pixel(red: $0.Red, green: $0.Green, blue: $0.Blue)
        }
    }

    private func call(_ what: String, _ body: () -> CInt) throws(Failure) {
        guard body() != GIF_OK else { return }
        throw Self.failure(what, handle.pointee.Error, isExhausted: input.isExhausted)
    }

    private static func failure(_ what: String, _ code: CInt, isExhausted: Bool) -> Failure {
        if isExhausted { return Failure(.truncated, "\(what): the file ends too early.") }
        if code == D_GIF_ERR_NOT_ENOUGH_MEM {
            return MemoryShortage.failure("To decode the GIF takes memory that")
        }
        let reason = GifErrorString(code).map { String(cString: $0) } ?? "giflib gave no reason"
        return Failure(.badImage, "\(what): \(reason)")
    }
}

/// At most 256 opaque colours and where each of them stands, for as many look-ups as there are pixels.
///
/// A hash table with open addressing, four times as large as it may get full.
struct ColourTable {
    static let most = 256
    private static let slots = 1024

    private(set) var colours: [Pixel] = []
    private var keys = [UInt32](repeating: 0, count: ColourTable.slots)
    private var values = [UInt8](repeating: 0, count: ColourTable.slots)

    init() {}

    /// - Parameter colours: opaque; those past the 256th are left out.
    init(_ colours: [Pixel]) {
        for colour in colours where !insert(colour) { return }
    }

    /// The colours of all pixels but the transparent black ones; nil where they are more than 256.
    init?(of pixels: UnsafeMutableBufferPointer<Pixel>) {
        var last = Pixel()
        for pixel in pixels where pixel != last && pixel != Pixel() {
            guard insert(pixel) else { return nil }
            last = pixel
        }
    }

    func index(of colour: Pixel) -> Int? {
        let slot = slot(of: colour)
        return keys[slot] == 0 ? nil : Int(values[slot])
    }

    func contains(allOf other: ColourTable) -> Bool { other.colours.allSatisfy { index(of: $0) != nil } }

    /// - Returns: false where it is full.
    private mutating func insert(_ colour: Pixel) -> Bool {
        let slot = slot(of: colour)
        guard keys[slot] == 0 else { return true }
        guard colours.count < Self.most else { return false }
        keys[slot] = colour.bits
        values[slot] = UInt8(colours.count)
        colours.append(colour)
        return true
    }

    /// Where it stands, or where it would. Opaque colours are never 0, which marks an empty slot.
    private func slot(of colour: Pixel) -> Int {
        var slot = Int((colour.bits &* 0x9E37_79B1) >> 22)
        while keys[slot] != 0, keys[slot] != colour.bits { slot = (slot + 1) & (Self.slots - 1) }
        return slot
    }
}

/// The bits of a pixel that are one of its colours, and what they come to in eight.
struct BMPMask: Equatable {
    private let bits: Int
    private let shift: Int
    /// For up to eight bits: the value of each, spread from 0 to 255.
    private let table: [UInt8]
    /// Bits beyond eight, which are dropped.
    private let excess: Int

    var isEmpty: Bool { bits == 0 }

    /// - Parameter bits: of 32; nil where they don't stand together.
    init?(_ bits: Int) {
        self.bits = bits
        shift = bits == 0 ? 0 : bits.trailingZeroBitCount
        let most = bits >> shift
        guard most & (most + 1) == 0 else { return nil }
        let count = most.nonzeroBitCount
        excess = max(0, count - 8)
        let top = most >> excess
        table = (0...top).map { top == 0 ? 0 : UInt8(($0 * 255 + top / 2) / top) }
    }

    func value(of pixel: Int) -> UInt8 { table[(pixel & bits) >> (shift + excess)] }
}

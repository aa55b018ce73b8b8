import TestSupport

/// A file that something was done to.
struct Mutation: Sendable {
    var bytes: [UInt8]
    /// Only its end was taken.
    var isCut = false

    /// One of five kinds, by the generator's numbers alone.
    init(of seed: [UInt8], _ random: inout SeededGenerator) {
        bytes = seed
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: flip(&random)
        case 5: insert(&random)
        case 6: delete(&random)
        case 7: swap(&random)
        case 8: setNumber(&random)
        default:
            bytes = Array(seed.prefix(Int.random(in: 0..<seed.count, using: &random)))
            isCut = true
        }
    }

    private mutating func flip(_ random: inout SeededGenerator) {
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            bytes[Int.random(in: bytes.indices, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
        }
    }

    private mutating func insert(_ random: inout SeededGenerator) {
        let place = Int.random(in: bytes.indices, using: &random)
        let count = Int.random(in: 1...40, using: &random)
        bytes.insert(contentsOf: (0..<count).map { _ in .random(in: 0...255, using: &random) }, at: place)
    }

    private mutating func delete(_ random: inout SeededGenerator) {
        let start = Int.random(in: bytes.indices, using: &random)
        bytes.removeSubrange(start..<min(bytes.count, start + .random(in: 1...40, using: &random)))
    }

    /// Two parts of the same length change places.
    private mutating func swap(_ random: inout SeededGenerator) {
        let length = Int.random(in: 1...max(1, bytes.count / 4), using: &random)
        let a = Int.random(in: 0...(bytes.count - length), using: &random)
        let b = Int.random(in: 0...(bytes.count - length), using: &random)
        for index in 0..<length { bytes.swapAt(a + index, b + index) }
    }

    /// What lengths and sizes are broken with.
    private mutating func setNumber(_ random: inout SeededGenerator) {
        let numbers: [[UInt8]] = [
            [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF], [0, 0], [0, 0, 0, 1],
            [0x80, 0, 0, 0], [0, 0x10, 0, 0],
        ]
        let number = numbers.randomElement(using: &random) ?? [0]
        let place = Int.random(in: 0...max(0, bytes.count - number.count), using: &random)
        for (index, byte) in number.enumerated() where place + index < bytes.count { bytes[place + index] = byte }
    }
}

import Glibc

/// The finalizer of SplitMix64 (Steele, Lea and Flood, 2014): every bit of the result depends on every bit of the
/// value.
func mixed(_ value: UInt64) -> UInt64 {
    var bits = value &+ 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
}

/// Random numbers that depend on the seed alone, on every machine.
struct Random {
    var state: UInt64

    mutating func bits() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }

    mutating func below(_ count: Int) -> Int { Int(truncatingIfNeeded: bits() >> 33) % count }
    /// At least 0 and less than 1: 53 bits, as many as a `Double` keeps.
    mutating func fraction() -> Double { Double(bits() >> 11) / 9_007_199_254_740_992 }
    mutating func between(_ low: Double, _ high: Double) -> Double { low + (high - low) * fraction() }

    /// Of the normal distribution with mean 0 and deviation 1, by Box and Muller's method.
    mutating func normal() -> Double {
        (-2 * log(1 - fraction())).squareRoot() * cos(2 * Double.pi * fraction())
    }
}

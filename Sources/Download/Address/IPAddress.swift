import Glibc

/// A numeric IPv4 or IPv6 address.
enum IPAddress: Hashable {
    case v4(UInt32)
    case v6(UInt128)

    init?(_ text: String) {
        var v4 = in_addr()
        var v6 = in6_addr()
        // A scope ("fe80::1%eth0") says which interface, not which range.
        let bare = text.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init)
        if inet_pton(AF_INET, bare ?? text, &v4) == 1 {
            self = .v4(UInt32(bigEndian: v4.s_addr))
        } else if inet_pton(AF_INET6, bare ?? text, &v6) == 1 {
            self.init(v6)
        } else {
            return nil
        }
    }

    init?(_ address: UnsafePointer<sockaddr>, length: Int) {
        let bytes = UnsafeRawPointer(address)
        switch Int32(address.pointee.sa_family) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            self = .v4(UInt32(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            self.init(bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
        default:
            return nil
        }
    }

    private init(_ address: in6_addr) {
        self = .v6(withUnsafeBytes(of: address) { UInt128(bigEndian: $0.loadUnaligned(as: UInt128.self)) })
    }

    /// The IPv4 addresses to which an IPv6 address leads: mapped, compatible, NAT64, 6to4, Teredo.
    var embedded: [IPAddress] {
        guard case .v6(let bits) = self else { return [] }
        let low = UInt32(truncatingIfNeeded: bits)
        switch (UInt64(truncatingIfNeeded: bits >> 64), UInt32(truncatingIfNeeded: bits >> 32)) {
        case (0, 0x0000_ffff): return [.v4(low)]
        case (0, 0) where low > 1: return [.v4(low)]
        case (0x0064_ff9b_0000_0000, 0): return [.v4(low)]
        case (let high, _) where high >> 48 == 0x2002: return [.v4(UInt32(truncatingIfNeeded: high >> 16))]
        // Teredo stores its server's address as it is and the client's with all bits inverted (RFC 4380, section 4).
        case (let high, _) where high >> 32 == 0x2001_0000: return [.v4(UInt32(truncatingIfNeeded: high)), .v4(~low)]
        default: return []
        }
    }

    /// The IPv4 address to which an ISATAP interface leads, in any network (RFC 5214, section 6.1).
    var tunnelled: IPAddress? {
        guard case .v6(let bits) = self, [0x0000_5efe, 0x0200_5efe].contains(UInt32(truncatingIfNeeded: bits >> 32))
        else { return nil }
        return .v4(UInt32(truncatingIfNeeded: bits))
    }
}

extension IPAddress: CustomStringConvertible {
    var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch self {
        case .v4(let bits):
            var address = in_addr(s_addr: bits.bigEndian)
            inet_ntop(AF_INET, &address, &text, socklen_t(text.count))
        case .v6(let bits):
            var address = bits.bigEndian
            inet_ntop(AF_INET6, &address, &text, socklen_t(text.count))
        }
        return text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    }
}

/// A range of addresses: `10.0.0.0/8`, `fe80::/10`, or one address.
struct AddressRange: Hashable {
    let base: IPAddress
    let prefix: Int

    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let base = IPAddress(String(parts[0])) else { return nil }
        let width = if case .v4 = base { 32 } else { 128 }
        guard parts.count == 2 else {
            self.init(base: base, prefix: width)
            return
        }
        guard let prefix = Int(parts[1]), (0...width).contains(prefix) else { return nil }
        self.init(base: base, prefix: prefix)
    }

    private init(base: IPAddress, prefix: Int) {
        self.base = base
        self.prefix = prefix
    }

    func contains(_ address: IPAddress) -> Bool {
        // Shifting by the full width gives 0 on both sides: a prefix of length 0 contains every address.
        switch (base, address) {
        case (.v4(let base), .v4(let other)): base >> (32 - prefix) == other >> (32 - prefix)
        case (.v6(let base), .v6(let other)): base >> (128 - prefix) == other >> (128 - prefix)
        default: false
        }
    }
}

import Glibc

/// The addresses that the worker may connect to. URLs come from feeds, so by default only public addresses are allowed.
///
/// The policy checks the address of each connection, at every redirect and every reuse; it does not check names. An
/// IPv4 address inside an IPv6 address (mapped, compatible, NAT64, 6to4, Teredo) is checked as that IPv4 address. An
/// ISATAP address is checked as its IPv4 address and as its network.
public struct AddressPolicy: Sendable {
    /// Refuses everything that is not a public unicast address.
    public static let publicOnly = AddressPolicy(allowed: [])

    private let allowed: [AddressRange]
    /// The allowed networks besides public addresses, as they were given; empty for none.
    public let text: String

    private init(allowed: [AddressRange], text: String = "") {
        self.allowed = allowed
        self.text = text
    }

    /// Allows ranges besides the public addresses.
    ///
    /// - Parameter ranges: `loopback`, `link-local`, `private`, `carrier-grade`, `unique-local`, `multicast`,
    ///   `reserved`, `any`, or a range such as `10.1.0.0/16` or `fd00::/8`, or a single address.
    /// - Throws: ``InvalidRange`` for anything else.
    public init(allowing ranges: [String]) throws(InvalidRange) {
        var allowed: [AddressRange] = []
        for text in ranges {
            if let named = Self.named[text] {
                allowed += named
            } else if let range = AddressRange(text) {
                allowed.append(range)
            } else {
                throw InvalidRange(text: text)
            }
        }
        self.init(allowed: allowed, text: Set(ranges).sorted().joined(separator: ","))
    }

    /// The names of ranges, in order.
    public static let names: [String] = named.keys.sorted()

    /// A range that is neither a known name nor an address with an optional prefix length.
    public struct InvalidRange: Error, Sendable, Equatable, CustomStringConvertible {
        public let text: String

        public var description: String {
            "'\(text)' is no address range: give one of \(AddressPolicy.names.joined(separator: ", ")), "
                + "or a range such as 10.1.0.0/16 (0 to 32) or fd00::/8 (0 to 128)."
        }
    }

    /// Whether the worker may connect to a numeric address. Any other text is refused.
    public func allows(_ address: String) -> Bool {
        IPAddress(address).map(allows) ?? false
    }

    func allows(_ address: IPAddress) -> Bool {
        if allowed.contains(where: { $0.contains(address) }) { return true }
        let embedded = address.embedded
        if !embedded.isEmpty { return embedded.allSatisfy(allows) }
        // IANA allocates only 2000::/3 as public unicast.
        if case .v6(let bits) = address, bits >> 125 != 1 { return false }
        if let tunnelled = address.tunnelled, !allows(tunnelled) { return false }
        return Self.reachable.contains { $0.contains(address) } || !Self.refused.contains { $0.contains(address) }
    }

    /// Networks that IANA's special-purpose registries call globally reachable, inside ranges that are not: anycast
    /// addresses, AMT, AS112, ORCHIDv2 and drones.
    private static let reachable = ranges(
        "192.0.0.9", "192.0.0.10", "2001:1::1", "2001:1::2", "2001:1::3", "2001:3::/32", "2001:4:112::/48",
        "2001:20::/28", "2001:30::/28",
    )

    /// IANA's special-purpose registries, without ``reachable``.
    private static let refused = ranges(
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
        "224.0.0.0/4", "240.0.0.0/4",
        "2001::/23", "2001:db8::/32", "3fff::/20",
    )

    private static let named: [String: [AddressRange]] = [
        "loopback": ranges("127.0.0.0/8", "::1"),
        "link-local": ranges("169.254.0.0/16", "fe80::/10"),
        "private": ranges("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
        "carrier-grade": ranges("100.64.0.0/10"),
        "unique-local": ranges("fc00::/7"),
        "multicast": ranges("224.0.0.0/4", "ff00::/8"),
        "reserved": ranges(
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
            "240.0.0.0/4", "2001::/23", "2001:db8::/32", "3fff::/20", "100::/64",
        ),
        "any": ranges("0.0.0.0/0", "::/0"),
    ]

    private static func ranges(_ texts: String...) -> [AddressRange] { texts.compactMap(AddressRange.init) }
}

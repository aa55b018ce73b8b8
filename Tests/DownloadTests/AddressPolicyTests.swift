import Download
import Testing

@Suite(.timeLimit(.minutes(15))) struct AddressPolicyTests {
    @Test(arguments: [
        "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
        "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
        "255.255.255.255", "::", "::1", "fc00::1", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
        "2001:db8::1", "3fff::1", "100::1", "64:ff9b:1::1", "2001:2::1",
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::192.168.0.1",
        "2002:7f00:1::1", "2002:c0a8:101::", "2001:0:4136:e378:8000:63bf:80ff:fffe",
        "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:127.0.0.1", "2001:db8::5efe:8.8.8.8", "2001:1::4", "2001:5::1",
        "192.0.0.8", "192.0.0.11", "2001:4:113::1", "2001:10::1", "2001:40::1",
        "", "localhost", "1.2.3", "example.com",
    ])
    func anAddressThatIsNotPublicIsRefusedByDefault(_ address: String) {
        #expect(!AddressPolicy.publicOnly.allows(address))
    }

    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.0.1",
        "198.20.0.1", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
        "2002:808:808::1", "2606:4700::5efe:8.8.8.8", "2606:4700::200:5efe:8.8.8.8",
        // Globally reachable by IANA's registries of special addresses.
        "192.0.0.9", "192.0.0.10", "2001:1::1", "2001:1::2", "2001:1::3", "2001:3::1", "2001:3:ffff::1",
        "2001:4:112::1", "2001:20::1", "2001:2f:ffff::1", "2001:30::1", "2001:3f::1",
    ])
    func aPublicAddressIsAllowedByDefault(_ address: String) {
        #expect(AddressPolicy.publicOnly.allows(address))
    }

    @Test(arguments: [
        ("loopback", "127.0.0.1", "10.0.0.1"), ("loopback", "::1", "::2"), ("loopback", "::ffff:127.0.0.1", "fe80::1"),
        ("link-local", "169.254.1.1", "127.0.0.1"), ("link-local", "fe80::1", "fec0::1"),
        ("private", "10.1.2.3", "127.0.0.1"), ("private", "fd00::1", "fe80::1"),
        ("private", "192.168.0.1", "192.0.2.1"),
        ("carrier-grade", "100.64.0.1", "10.0.0.1"), ("unique-local", "fd00::1", "10.0.0.1"),
        ("multicast", "224.0.0.1", "240.0.0.1"), ("reserved", "203.0.113.1", "10.0.0.1"),
        ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"), ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
        ("fd00:1::/32", "fd00:1:2::3", "fd00:2::"), ("any", "127.0.0.1", "nonsense"), ("0.0.0.0/0", "10.0.0.1", "::1"),
    ])
    func anAllowedRangeOpensOnlyItsAddresses(range: String, inside: String, outside: String) throws {
        let policy = try AddressPolicy(allowing: [range])
        #expect(policy.allows(inside))
        #expect(!policy.allows(outside))
        #expect(policy.allows("1.1.1.1"))
    }

    @Test(arguments: ["", "local", "10.0.0.0/33", "10.0.0/8", "fe80::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "1.1.1.1/"])
    func anInvalidRangeIsRefused(_ range: String) {
        #expect(throws: AddressPolicy.InvalidRange.self) { try AddressPolicy(allowing: [range]) }
    }
}

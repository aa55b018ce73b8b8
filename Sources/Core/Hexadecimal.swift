extension String {
    /// Two lowercase digits for each byte.
    package init(hexadecimal bytes: some Collection<UInt8>) {
        let digits: StaticString = "0123456789abcdef"
        self.init(unsafeUninitializedCapacity: 2 * bytes.count) { text in
            var end = 0
            for byte in bytes {
                text[end] = digits.utf8Start[Int(byte >> 4)]
                text[end + 1] = digits.utf8Start[Int(byte & 15)]
                end += 2
            }
            return end
        }
    }
}

extension String {
    /// Two lowercase digits for each byte.
    ///
    /// Not generic: each body's hash is written on the thread of the transfers, and from another module a generic loop asks
    /// for the witness of each byte.
    package init(hexadecimal bytes: [UInt8]) {
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

/// JSON that is passed on unchanged, with its numbers as they were written.
package enum JSONText {
    /// An object with one more member.
    ///
    /// - Parameters:
    ///   - value: valid JSON in one line; nil adds nothing.
    ///   - object: the text of an object that has members already.
    package static func adding(_ name: String, _ value: String?, to object: String) -> String {
        value.map { "\(object.dropLast()),\"\(name)\":\($0)}" } ?? object
    }
}

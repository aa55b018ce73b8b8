/// A mistake in a setting or an argument, as a sentence for the person who wrote it.
struct SettingsError: Error, CustomStringConvertible {
    let message: String
    var description: String { message }

    init(_ message: String) { self.message = message }
}

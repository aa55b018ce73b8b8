struct SettingsError: Error, CustomStringConvertible {
    let message: String
    var description: String { message }
}

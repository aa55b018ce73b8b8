import ArgumentParser
import Lists

/// The arguments of several commands.
enum JobNumber {
    /// - Throws: an error that says that a job is a number.
    static func read(_ text: String) throws -> Int64 {
        guard let number = Int64(text), number > 0 else {
            let isNumber = !text.isEmpty && text.drop { $0 == "-" }.allSatisfy(\.isNumber)
            throw SettingsError(
                "A job is a number\(isNumber ? " above 0" : ""), not '\(text)'. List the jobs with: worker status")
        }
        return number
    }
}

/// URLs that a command looks up.
enum LookedUpURL {
    /// - Throws: `usage` for a word that no job can have as a URL.
    static func check(_ urls: [String]) throws {
        for url in urls where !url.contains(":") {
            guard case .bad(let message) = URLArgument.verdict(url) else { continue }
            throw SettingsError(message)
        }
    }
}

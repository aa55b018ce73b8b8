/// `Name: value`, as people write a header.
struct HeaderLine {
    let name: String
    let value: String

    init(_ line: String) throws {
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
            // The message does not quote the line: it may be a secret.
            throw SettingsError("A header is 'Name: value', or @FILE for a file of such lines.")
        }
        name = String(line[..<colon])
        value = String(line[line.index(after: colon)...].drop { $0 == " " })
    }

    /// Headers as given on the command line: `Name: value`, or `@FILE` for a file of such lines. Other users can see a
    /// process's arguments, but not the file.
    static func all(_ given: [String]) throws -> [HeaderLine] {
        try given.flatMap { text -> [HeaderLine] in
            guard text.hasPrefix("@") else { return [try HeaderLine(text)] }
            let file = try InputFile.text(String(text.dropFirst()), as: "file of headers")
            return try file.split(whereSeparator: \.isNewline).map(String.init).filter {
                !$0.allSatisfy(\.isWhitespace) && !$0.hasPrefix("#")
            }
            .map(HeaderLine.init)
        }
    }

    /// Headers for every host. Headers with credentials are refused, since every host would get them.
    static func common(_ lines: [String]) throws -> [(name: String, value: String)] {
        try all(lines).map { header in
            guard !["authorization", "cookie", "proxy-authorization"].contains(header.name.lowercased()) else {
                throw SettingsError("\(header.name) would go to every host. Give it to a job: worker enqueue --header")
            }
            return (name: header.name, value: header.value)
        }
    }
}

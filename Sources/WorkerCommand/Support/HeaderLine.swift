/// `Name: value`, as people write a header.
struct HeaderLine {
    let name: String
    let value: String

    init(_ line: String) throws {
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else {
            throw SettingsError(message: "A header is 'Name: value', not '\(line)'.")
        }
        name = String(line[..<colon])
        value = String(line[line.index(after: colon)...].drop { $0 == " " })
    }

    /// One for every host: nothing that is meant for one of them.
    static func common(_ lines: [String]) throws -> [(name: String, value: String)] {
        try lines.map { line in
            let header = try HeaderLine(line)
            guard !["authorization", "cookie", "proxy-authorization"].contains(header.name.lowercased()) else {
                throw SettingsError(
                    message: "\(header.name) would go to every host. Give it to a job: worker enqueue --header")
            }
            return (name: header.name, value: header.value)
        }
    }
}

import Core
import Jobs
import Yams

/// The keys of a manifest with their values; a mistake names the file, the line and the key.
struct ManifestFields {
    /// A value that is not yet judged.
    struct Field {
        let key: Manifest.Key
        let node: Node
        let place: String

        func text() throws(SettingsError) -> String {
            guard let text = node.scalar?.string else { throw wrong("must be a text") }
            return text
        }

        /// A text, or a list of texts.
        func texts() throws(SettingsError) -> [String] {
            if let text = node.scalar?.string { return [text] }
            return try elements("must be a text or a list of texts")
        }

        func list() throws(SettingsError) -> [String] {
            guard let text = node.scalar?.string else {
                return try elements("must be a list, with each URL on a line behind a dash")
            }
            throw wrong("must be a list; write: \(key.rawValue): ['\(text.prefix(100))']")
        }

        private func elements(_ what: String) throws(SettingsError) -> [String] {
            guard let sequence = node.sequence else { throw wrong(what) }
            var texts: [String] = []
            for (index, element) in sequence.enumerated() {
                guard let text = element.scalar?.string else {
                    throw wrong("has an element \(index + 1) that is no text")
                }
                texts.append(text)
            }
            return texts
        }

        func map() throws(SettingsError) -> [String: String] {
            guard let mapping = node.mapping else {
                throw wrong("must be names with values, such as Referer: https://a.example/")
            }
            var values: [String: String] = [:]
            for (name, value) in mapping {
                guard let name = name.string, let value = value.scalar?.string else {
                    throw wrong("must be names with texts as their values")
                }
                values[name] = value
            }
            return values
        }

        func priority() throws(SettingsError) -> Int {
            guard let text = node.scalar?.string, let number = Int(text), (-100...100).contains(number) else {
                throw wrong(
                    "must be a whole number from -100 to 100\(node.scalar.map { ", not '\($0.string.prefix(40))'" } ?? "")"
                )
            }
            return number
        }

        func order() throws(SettingsError) -> ExecutionOrder {
            do {
                return try Manifest.order(text())
            } catch {
                throw SettingsError("\(place): \(error.message)")
            }
        }

        private func wrong(_ what: String) -> SettingsError { SettingsError("\(place): \(key.rawValue) \(what).") }
    }

    let all: [(key: Manifest.Key, field: Field)]

    init(_ text: String, _ path: String) throws(SettingsError) {
        let node: Node?
        do {
            node = try Yams.compose(yaml: text)
        } catch {
            throw SettingsError("The manifest \(path) can't be used: it is no YAML. \(error)")
        }
        guard let mapping = node?.mapping else {
            throw SettingsError(
                "The manifest \(path) can't be used: it has to be keys with values, such as 'urls: [https://a.example/1.jpg]'. "
                    + "A list of URLs is enqueued with: worker enqueue -f \(path)")
        }
        var all: [(key: Manifest.Key, field: Field)] = []
        for (name, value) in mapping {
            let place = (name.mark ?? value.mark).map { "\(path), line \($0.line)" } ?? path
            let word = name.string ?? "?"
            guard let key = Manifest.Key(rawValue: word) else { throw Self.unknown(word, place) }
            all.append((key, Field(key: key, node: value, place: place)))
        }
        self.all = all
    }

    private static func unknown(_ word: String, _ place: String) -> SettingsError {
        let known = Manifest.Key.allCases.map(\.rawValue)
        return SettingsError(
            "\(place): unknown key '\(word.prefix(64))'.\(NearestWord.question(word, among: known)) The keys are: "
                + known.joined(separator: ", ") + ".")
    }
}

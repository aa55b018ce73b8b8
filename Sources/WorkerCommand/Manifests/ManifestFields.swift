import Core
import Jobs
import PrefetchWorker
import Yams

/// The keys of a mapping in a manifest with their values; a mistake names the file, the line and the key.
struct ManifestFields<Key: RawRepresentable & CaseIterable> where Key.RawValue == String {
    let all: [(key: Key, field: ManifestField)]

    init(_ node: Node, _ path: String, at place: String) throws(SettingsError) {
        guard let mapping = node.mapping else {
            let keys = Key.allCases.map(\.rawValue).joined(separator: ", ")
            throw SettingsError("\(place): this has to be keys with values. The keys are: \(keys).")
        }
        var all: [(key: Key, field: ManifestField)] = []
        for (name, value) in mapping {
            let place = (name.mark ?? value.mark).map { "\(path), line \($0.line)" } ?? path
            let word = name.string ?? "?"
            guard let key = Key(rawValue: word) else {
                let known = Key.allCases.map(\.rawValue)
                throw SettingsError(
                    "\(place): unknown key '\(word.prefix(64))'.\(NearestWord.question(word, among: known)) The keys are: "
                        + known.joined(separator: ", ") + ".")
            }
            all.append((key, ManifestField(name: word, node: value, path: path, place: place)))
        }
        self.all = all
    }
}

/// A value that is not yet judged.
struct ManifestField {
    let name: String
    let node: Node
    /// The manifest.
    let path: String
    /// The manifest and the line.
    let place: String

    func text() throws(SettingsError) -> String {
        guard let text = node.scalar?.string else { throw wrong("must be a text") }
        return text
    }

    /// A text that is not empty.
    func filled() throws(SettingsError) -> String {
        let text = try text()
        guard !text.isEmpty else { throw wrong("must not be empty") }
        return text
    }

    /// A value that the job can have, by the same rules as a flag's.
    func checked<Value>(_ value: Value, _ set: (inout NewJob, Value) -> Void) throws(SettingsError) -> Value {
        var job = NewJob(urls: [])
        set(&job, value)
        do {
            try WorkerJobs.check(job)
        } catch {
            throw SettingsError("\(place): \(name): \(error.message)")
        }
        return value
    }

    /// A text or a list of texts, by the same rules; a mistake names the line of the text that is wrong by itself.
    func checked(joined separator: String, _ set: (inout NewJob, String) -> Void) throws(SettingsError) -> String {
        let texts = try texts()
        for (text, line) in zip(texts, lines) {
            let place = line.map { "\(path), line \($0)" } ?? place
            _ = try ManifestField(name: name, node: node, path: path, place: place).checked(text, set)
        }
        return try checked(texts.joined(separator: separator), set)
    }

    /// The line of each element of a list.
    var lines: [Int?] { node.sequence?.map { $0.mark?.line } ?? [] }

    /// A text, or a list of texts.
    func texts() throws(SettingsError) -> [String] {
        if let text = node.scalar?.string { return [text] }
        return try elements("must be a text or a list of texts")
    }

    func list() throws(SettingsError) -> [String] {
        guard let text = node.scalar?.string else {
            return try elements("must be a list, with each URL on a line behind a dash")
        }
        throw wrong("must be a list; write: \(name): ['\(text.prefix(100))']")
    }

    private func elements(_ what: String) throws(SettingsError) -> [String] {
        var texts: [String] = []
        for (index, element) in try nodes(what).enumerated() {
            guard let text = element.scalar?.string else { throw wrong("has an element \(index + 1) that is no text") }
            texts.append(text)
        }
        return texts
    }

    func nodes(_ what: String) throws(SettingsError) -> [Node] {
        guard let sequence = node.sequence else { throw wrong(what) }
        return Array(sequence)
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

    func whole(in range: ClosedRange<Int>) throws(SettingsError) -> Int {
        guard let text = node.scalar?.string, let number = Int(text), range.contains(number) else {
            let given = node.scalar.map { ", not '\($0.string.prefix(40))'" } ?? ""
            throw wrong("must be a whole number from \(range.lowerBound) to \(range.upperBound)\(given)")
        }
        return number
    }

    /// A value as a flag of the same name takes it.
    func parsed<Value>(_ read: (String) throws -> Value) throws(SettingsError) -> Value {
        let text = try text()
        do {
            return try read(text)
        } catch {
            throw SettingsError("\(place): \(Self.sentence(error))")
        }
    }

    private static func sentence(_ error: any Error) -> String { (error as? SettingsError)?.message ?? "\(error)" }

    private func wrong(_ what: String) -> SettingsError { SettingsError("\(place): \(name) \(what).") }
}

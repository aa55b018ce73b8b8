import Yams

/// An error of the YAML reader as a sentence with its place, without the reader's own context.
enum YAMLMistake {
    static func sentence(_ error: any Error) -> String {
        switch error {
        case YamlError.scanner(_, let problem, let mark, _), YamlError.parser(_, let problem, let mark, _),
            YamlError.composer(_, let problem, let mark, _):
            return "Line \(mark.line), column \(mark.column): \(words(problem))."
        case YamlError.reader(let problem, _, _, _): return "A character cannot be read: \(words(problem))."
        case YamlError.duplicatedKeysInMapping(let duplicates, let context):
            let keys = duplicates.sorted().map { "'\($0)'" }.joined(separator: ", ")
            return "Line \(context.mark.line): there is more than one \(keys)."
        default: return "It cannot be read."
        }
    }

    /// Our sentences in place of those of the YAML reader that don't say what to do.
    private static let own = [
        "but found another document": "a second document begins here; leave out the line ---",
        "mapping values are not allowed in this context":
            "': ' is there a second time, or the indentation is wrong; put the value in quotes",
        "found character that cannot start any token":
            "no value begins with this character; indent with spaces, and put the value in quotes",
        "did not find expected <document start>": "the text goes on behind its end; check the indentation",
        "did not find expected node content": "a value is missing here",
        "found unexpected end of stream": "a quote is opened and never closed",
        "could not find expected ':'": "a key needs ': ' behind it",
    ]

    private static func words(_ problem: String) -> String {
        if let own = own[problem] { return own }
        let missing = "did not find expected "
        return problem.hasPrefix(missing) ? "\(problem.dropFirst(missing.count)) is expected here" : problem
    }
}

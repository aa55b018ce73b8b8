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

    private static func words(_ problem: String) -> String {
        let missing = "did not find expected "
        return problem.hasPrefix(missing) ? "\(problem.dropFirst(missing.count)) is expected here" : problem
    }
}

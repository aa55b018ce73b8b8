import SystemPackage
import TestSupport
import Testing

/// A page of `docs/guides`, and its blocks of commands as one program for bash.
struct Guide: Sendable, CustomTestStringConvertible {
    /// A fenced block of code.
    struct Block: Sendable {
        /// What stands behind the fence: `sh`, `console`, `sh no-test`, `sql`, …
        let kind: String
        let lines: [String]
        /// The number of its first line in the page.
        let line: Int
    }

    /// Commands, and the output that the page shows for them.
    struct Step: Sendable {
        let command: String
        let output: [String]?
        let line: Int
    }

    let name: String
    let blocks: [Block]
    var testDescription: String { name }

    static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
        .removingLastComponent()
    static let all: [Guide] = {
        let folder = root.appending("docs").appending("guides")
        return fileNames(in: folder.string).filter { $0.hasSuffix(".md") }.sorted().map { name in
            let bytes = ProcessTable.contents(of: folder.appending(name).string) ?? []
            return Guide(name: name, blocks: blocks(of: String(decoding: bytes, as: UTF8.self)))
        }
    }()

    /// A list's code is indented; what stands before the fence is taken off each of its lines.
    private static func blocks(of page: String) -> [Block] {
        var blocks: [Block] = []
        var open: (kind: String, indent: Int, lines: [String], line: Int)?
        for (number, line) in page.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let bare = line.drop { $0 == " " }
            if let block = open {
                if bare == "```" {
                    blocks.append(Block(kind: block.kind, lines: block.lines, line: block.line))
                    open = nil
                } else {
                    open?.lines.append(String(line.dropFirst(block.indent)))
                }
            } else if bare.hasPrefix("```") {
                open = (String(bare.dropFirst(3)), line.count - bare.count, [], number + 2)
            }
        }
        return blocks
    }

    /// The blocks that are run, in the page's order. The output of the n-th command shown goes to the file `n` of a folder.
    func program(outputs folder: String) -> String {
        let start = """
            set -euo pipefail
            trap '[ $? -eq 0 ] || echo "failed: $step" >&2' EXIT

            """
        var number = 0
        return steps.reduce(into: start) { text, step in
            text += "step=\("\(name):\(step.line): \(step.command.prefix { $0 != "\n" })".quoted)\n"
            guard step.output != nil else { return text += step.command + "\n" }
            text += "{ \(step.command)\n} >\("\(folder)/\(number)".quoted)\n"
            number += 1
        }
    }

    /// The steps whose output the page shows.
    var shown: [Step] { steps.filter { $0.output != nil } }

    /// A block `sh` is one step, and a block `text` right behind it is its output. In a block `console` each command is one.
    private var steps: [Step] {
        zip(blocks, blocks.dropFirst().map(Optional.some) + [nil]).flatMap { block, next in
            switch block.kind {
            case "sh":
                let output = next?.kind == "text" ? next?.lines : nil
                return [Step(command: block.lines.joined(separator: "\n"), output: output, line: block.line)]
            case "console": return Self.commands(in: block)
            default: return []
            }
        }
    }

    /// A command begins with `$ `, and goes on behind a backslash at the end of its line.
    private static func commands(in block: Block) -> [Step] {
        var steps: [Step] = []
        var lines = block.lines.enumerated().makeIterator()
        while let (index, line) = lines.next() {
            if line.hasPrefix("$ ") {
                var command = String(line.dropFirst(2))
                while command.hasSuffix("\\"), let (_, more) = lines.next() { command += "\n" + more }
                steps.append(Step(command: command, output: [], line: block.line + index))
            } else if let last = steps.popLast() {
                steps.append(Step(command: last.command, output: (last.output ?? []) + [line], line: last.line))
            }
        }
        return steps
    }
}

extension Guide.Step {
    /// Whether a command has printed what the page shows. `…` stands for anything, and several blanks for one.
    func matches(_ printed: String) -> Bool {
        let wanted = Self.plain((output ?? []).joined(separator: "\n")).split(
            separator: "…", omittingEmptySubsequences: false)
        var rest = Substring(Self.plain(printed))
        for (index, piece) in wanted.enumerated() {
            if index == 0 {
                guard rest.hasPrefix(piece) else { return false }
                rest = rest.dropFirst(piece.count)
            } else if index == wanted.count - 1 {
                return rest.hasSuffix(piece)
            } else {
                guard let range = rest.firstRange(of: piece) else { return false }
                rest = rest[range.upperBound...]
            }
        }
        return rest.isEmpty
    }

    private static func plain(_ text: String) -> String {
        text.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }.joined(separator: "\n")
    }
}

extension String {
    /// As one word for a shell.
    fileprivate var quoted: String { "'" + replacing("'", with: "'\\''") + "'" }
}

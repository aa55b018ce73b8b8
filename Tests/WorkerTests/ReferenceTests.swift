import Foundation
import SystemPackage
import TestSupport
import Testing

/// The pages in `docs`, against the program and each other.
@Suite(.timeLimit(.minutes(15))) struct ReferenceTests {
    private static let docs = Guide.root.appending("docs").string

    @Test(.enabled(if: ChildProcess.find("python3") != nil, "python3 is needed"))
    func `The generated reference pages are up to date`() async throws {
        try await withWorker { w in
            let folder = w.place("reference")
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
            let binary = Self.absolute(TestWorker.binary)
            try await w.run(
                [Guide.root.appending("scripts/reference").string, folder], program: "python3",
                environment: ["WORKER": binary])
            for name in ["commands.md", "options.md", "metrics.md"] {
                let isSame = try w.bytes(of: "\(folder)/\(name)") == w.bytes(of: "\(Self.docs)/reference/\(name)")
                #expect(isSame, "docs/reference/\(name) is out of date: run scripts/reference")
            }
        }
    }

    private static func absolute(_ path: String) -> String {
        path.hasPrefix("/") ? path : Guide.root.appending(path).string
    }

    // MARK: - Links

    private static let pages: [String: String] = {
        let paths =
            ["README.md"] + ((try? FileManager.default.subpathsOfDirectory(atPath: docs)) ?? []).map { "docs/" + $0 }
        return Dictionary(
            uniqueKeysWithValues: paths.filter { $0.hasSuffix(".md") }.map { path in
                (
                    path,
                    String(decoding: ProcessTable.contents(of: Guide.root.appending(path).string) ?? [], as: UTF8.self)
                )
            })
    }()

    /// The page without its blocks of code.
    private static func prose(_ page: String) -> [Substring] {
        var isCode = false
        return page.split(separator: "\n").filter { line in
            if line.drop(while: { $0 == " " }).hasPrefix("```") { isCode.toggle() }
            return !isCode
        }
    }

    /// A heading as GitHub names it in links.
    private static func anchor(_ heading: Substring) -> String {
        String(
            heading.drop { $0 == "#" || $0 == " " }.lowercased().compactMap { character in
                character == " "
                    ? "-" : character.isLetter || character.isNumber || "-_".contains(character) ? character : nil
            })
    }

    @Test func `Links lead to pages and headings that exist`() {
        let anchors = Self.pages.mapValues { page in
            Set(Self.prose(page).filter { $0.hasPrefix("#") }.map(Self.anchor))
        }
        for (path, page) in Self.pages {
            for link in Self.prose(page).joined(separator: "\n").matches(of: /\]\(([^)\s]+)\)/).map(\.output.1)
            where !link.hasPrefix("http") {
                let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let folder = FilePath(path).removingLastComponent()
                let target =
                    parts[0].isEmpty ? path : folder.pushing(FilePath(String(parts[0]))).lexicallyNormalized().string
                let isThere = FileManager.default.fileExists(atPath: Guide.root.appending(target).string)
                #expect(isThere, "\(path): \(link)")
                if parts.count > 1 { #expect(anchors[target]?.contains(String(parts[1])) == true, "\(path): \(link)") }
            }
        }
    }

    @Test func `The README is short`() throws {
        #expect(
            try #require(Self.pages["README.md"]).split(separator: "\n", omittingEmptySubsequences: false).count <= 121)
    }

    // MARK: - SDWebImage

    /// Every command and option that the page names does its work, and every hook, view, class, Swift name and test exists.
    @Test func `All that the page about SDWebImage's features names exists and runs`() async throws {
        let page = try #require(Self.pages["docs/reference/sdwebimage.md"])
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") && !$0.contains("| shown by |") }
            .map {
                $0.split(separator: "|", omittingEmptySubsequences: false).map {
                    $0.trimmingCharacters(in: .whitespaces)
                }
            }
            .filter { $0.count == 5 && !$0[1].hasPrefix("---") }
        #expect(rows.count > 40)
        let sources = Self.text(ofFilesIn: ["Sources", "docs/reference"])
        let tests = Self.text(ofFilesIn: ["Tests"])
        try await withWorker { w in
            try await w.run("init")
            for row in rows {
                for part in row[2].split(separator: ";") {
                    let areOptions = part.contains(/\boptions? (such as )?`/)
                    for span in part.matches(of: /`([^`]+)`/).map({ String($0.output.1) }) {
                        try await Self.check(span, in: sources, w)
                        if areOptions, span.wholeMatch(of: /[a-z-]+/) != nil { try await Self.enqueue(option: span, w) }
                    }
                }
                for test in row[3].split(separator: ",").map({ $0.trimmingCharacters(in: .whitespaces) }) {
                    #expect(Self.contains(tests, "struct \(test)"), "\(row[1]): there is no \(test)")
                }
                #expect(!row[3].isEmpty || row[2].contains("not apply") || row[2].contains("one cache"), "\(row[1])")
            }
            // The jobs with the options: each does its work, even if the option lets its item fail.
            try await w.run("resume", "--all")
            try await w.drain(expecting: nil)
            #expect(
                try await w.value("SELECT count(*) FROM jobs WHERE state NOT IN ('finished', 'cancelled')") == "0")
            #expect(try await w.value("SELECT count(*) > 20 FROM jobs WHERE state = 'finished'") == "1")
        }
    }

    private static func check(_ span: String, in sources: String, _ w: TestWorker) async throws {
        let words = span.split(separator: " ").map(String.init)
        if words[0] == "worker" {
            let command = words.dropFirst().prefix { !$0.hasPrefix("-") }
            let help = try await w.run(command + ["--help"]).output
            for flag in words where flag.hasPrefix("--") { #expect(flags(in: help).contains(flag), "\(span)") }
            // A job for the command.
            try await w.enqueue(w.url("/1.png"))
            let job = try await w.value("SELECT max(id) FROM jobs")
            guard let arguments = arguments(of: command.joined(separator: " "), job: job, w) else {
                Issue.record("This test does not know how to run '\(span)'.")
                return
            }
            let all = words.dropFirst().contains("--all")
            let run = try await w.run(
                command + (all ? ["--all"] : arguments), environment: ["WORKER_ALLOW_ADDRESSES": "loopback"],
                expecting: nil)
            // 75: the wait was over before the job.
            #expect([0, 1, 2, 75].map { .code($0) }.contains(run.exit), "\(span): \(run.exit) \(run.errors)")
        } else if span.hasPrefix("--") {
            let reference = ["commands", "options"].map { pages["docs/reference/\($0).md"] ?? "" }.joined()
            #expect(flags(in: reference).contains(words[0]), "\(span)")
        } else if span.contains("."), span.first?.isLowercase == true {
            let parts = span.split(separator: ".")
            _ = try await w.value("SELECT \(parts[1]) FROM \(parts[0]) LIMIT 1")
        } else {
            let name = span.split(separator: ".").last.map(String.init) ?? span
            let isThere = contains(sources, name)
            #expect(isThere, "\(span)")
        }
    }

    /// Whole words, so that a part of another name is not enough.
    private static func contains(_ text: String, _ name: String) -> Bool {
        text.ranges(of: name).contains { range in
            let before = range.lowerBound > text.startIndex ? text[text.index(before: range.lowerBound)] : " "
            let after = range.upperBound < text.endIndex ? text[range.upperBound] : " "
            return ![before, after].contains { $0.isLetter || $0.isNumber }
        }
    }

    /// What makes a command of the page do its work; nil for one that is not known here.
    private static func arguments(of command: String, job: String, _ w: TestWorker) -> [String]? {
        let picture = w.place("picture.png")
        if !FileManager.default.fileExists(atPath: picture) {
            _ = FileManager.default.createFile(atPath: picture, contents: Data(Pictures.png(7)))
        }
        return switch command {
        case "run": TestWorker.quick + ["--drain", "--concurrency", "3"]
        case "enqueue": [w.url("/5.png"), "--fallback", w.url("/6.png")]
        case "status", "limits", "blacklist list", "cache gc", "cache stats": []
        case "events": ["--no-follow"]
        case "wait": [job, "--timeout", "10ms"]
        case "cancel", "pause", "resume": [job]
        case "reorder": [job, "--order", "lifo"]
        case "retry": [job, "--retry-failed"]
        case "explain", "get", "cache remove": [w.url("/1.png")]
        case "cache put": [w.url("/put.png"), picture]
        case "cache clear": ["--yes"]
        case "import": [w.scratch, "--url-template", w.url("/imported/{path}")]
        default: nil
        }
    }

    /// Whole flags, so that the beginning of another one's name is not enough.
    private static func flags(in text: String) -> Set<String> {
        Set(text.matches(of: /--[a-z0-9][a-z0-9-]*/).map { String($0.output) })
    }

    /// A job takes the option, alone or with one of these values.
    private static func enqueue(option: String, _ w: TestWorker) async throws {
        for value in ["", "=1", "=1s", "=image/png", "=drop-query"] {
            let run = try await w.run("enqueue", w.url("/1.png"), "--option", option + value, expecting: nil)
            if run.exit == .code(0) { return }
        }
        Issue.record("There is no option \(option).")
    }

    private static func text(ofFilesIn folders: [String]) -> String {
        folders.flatMap { folder in
            ((try? FileManager.default.subpathsOfDirectory(atPath: Guide.root.appending(folder).string)) ?? [])
                .filter { ($0.hasSuffix(".swift") || $0.hasSuffix(".md")) && !$0.hasSuffix("sdwebimage.md") }
                .map { Guide.root.appending(folder).appending($0).string }
        }.map { String(decoding: ProcessTable.contents(of: $0) ?? [], as: UTF8.self) }.joined(separator: "\n")
    }
}

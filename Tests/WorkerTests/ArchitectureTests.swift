import SystemPackage
import TestSupport
import Testing

/// The page on architecture names the files that one JPEG passes on its way to a WebP, and the list is short and true.
struct ArchitectureTests {
    private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent()

    /// The files of the numbered list in the section, in the order of the way.
    private func way() throws -> [String] {
        let page = try text("docs/architecture.md")
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "## The path of a JPEG"))
        return lines[(start + 1)...].prefix { !$0.hasPrefix("## ") }
            .compactMap { $0.firstMatch(of: /^\d+\. `(Sources\/[^`]+)`/).map { String($0.output.1) } }
    }

    private func text(_ file: String) throws -> String {
        String(decoding: try #require(ProcessTable.contents(of: Self.root.appending(file).string)), as: UTF8.self)
    }

    @Test func thePathOfOneJPEGHasAtMostTwentyFilesAndFourThousandLines() throws {
        let files = try way()
        #expect((12...20).contains(files.count))
        #expect(Set(files).count == files.count)
        let lines = try files.reduce(0) { try $0 + text($1).utf8.count(where: { $0 == UInt8(ascii: "\n") }) }
        #expect(lines <= 4_000, "\(lines) lines")
    }

    /// Each file declares something that an earlier file calls, so the list has no gap.
    @Test func eachFileOfThePathIsCalledByAnEarlierFile() throws {
        let files = try way()
        var before = ""
        for file in files {
            let text = try text(file)
            let names = Set(
                text.matches(of: /(?:struct|class|enum|protocol|func) ([A-Za-z]\w+)/).map { String($0.output.1) }
            ).subtracting(["run", "init", "make", "start", "read", "write", "close"])
            if !before.isEmpty {
                #expect(names.contains { before.contains($0 + "(") || before.contains($0 + ".") }, "\(file)")
            }
            before += text
        }
    }
}

import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Files that fuzzers found against other decoders, one by one in real helpers.
@Suite(
    .serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt),
    .enabled(if: Corpus.isThere, "\(Corpus.missing)"))
struct MalformedTests {
    @Test(arguments: ["gif", "png", "jpeg", "webp", "tiff"])
    func eachMalformedFileEndsInAClassWithinItsTimeAndMemory(folder: String) async throws {
        let files = Corpus.files("malformed/\(folder)")
        #expect(files.count > 100)
        try await PictureHelper.lend { helper in
            for file in files {
                let answer = try await helper.make(Corpus.bytes(file), "small=64x64,webp kept=64x64", within: 20)
                #expect(answer.isOrderly && answer.seconds < 20 && answer.peak < 1_024, "\(file): \(answer)")
                guard answer.isOrderly else { return }
            }
        }
    }
}

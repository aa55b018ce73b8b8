import ImageFiles
import Imaging
import Jobs
import Testing

@testable import PrefetchWorker

@Suite("Placeholders from a helper", .timeLimit(.minutes(15)))
struct ImagePlaceholdersTests {
    private func placeholders(
        _ colour: String? = "#0a0b0c", blur: String = "L$HVCg2Y$5Sgl|azjtf7gcfjfQfj", thumb: String = "3wcKPZqA+/=="
    ) -> Placeholders {
        Placeholders(dominantColour: colour, blurHash: blur, thumbHash: thumb, perceptualHash: 7)
    }

    @Test func `Valid placeholders are accepted`() {
        let looks = ImagePlaceholders(placeholders())
        #expect(looks?.dominantColour == "#0a0b0c" && looks?.perceptualHash == 7)
        #expect(ImagePlaceholders(placeholders(nil)) != nil)
    }

    @Test(arguments: ["", "#12345", "1234567", "#12345g", "#<b>0ac", "red;}"])
    func `An invalid colour is refused`(colour: String) {
        #expect(ImagePlaceholders(placeholders(colour)) == nil)
    }

    @Test(arguments: ["<script>", "a b", "a\u{1B}[2J", "\"", "'", "&amp;", String(repeating: "0", count: 65)])
    func `An invalid hash is refused`(text: String) {
        #expect(ImagePlaceholders(placeholders(blur: text)) == nil)
        #expect(ImagePlaceholders(placeholders(thumb: text)) == nil)
    }
}

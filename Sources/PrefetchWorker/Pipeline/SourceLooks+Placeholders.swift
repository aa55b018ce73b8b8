internal import Imaging
internal import Jobs

extension SourceLooks {
    init(_ placeholders: Placeholders) {
        self.init(
            dominantColour: placeholders.dominantColour, blurHash: placeholders.blurHash,
            thumbHash: placeholders.thumbHash, perceptualHash: placeholders.perceptualHash,
        )
    }
}

internal import Core
import ImageFiles

/// The facts of an animation that an encoder has before its first frame.
struct AnimationOutline {
    var size: PixelSize
    var frames: Int
    /// How often it plays; 0 means for ever.
    var loopCount: Int

    /// Of all frames together.
    var pixels: Int {
        let (product, overflow) = frames.multipliedReportingOverflow(by: size.pixels)
        return overflow ? .max : product
    }

    /// The time that an encoder takes, as the number of pixels that lossy WebP encodes in that time.
    ///
    /// - Parameter factor: by how much the encoder is slower.
    func cost(_ factor: Int) -> Int {
        let (product, overflow) = pixels.multipliedReportingOverflow(by: factor)
        return overflow ? .max : product
    }
}

/// The efforts of an encoder that takes much longer than WebP's. The effort depends only on the variant and the number
/// of pixels in all frames, so that the same variant gives the same bytes on any machine.
struct AnimationEfforts {
    /// The pixels that one animation may take: some 15 s of the 30 s of CPU that an image has.
    static let allowance = 120_000_000

    /// For each effort, by how much the encoder is slower than lossy WebP, which encodes some 8 million pixels in a
    /// second of CPU.
    let slowness: [Int: Int]
    /// The highest effort if the variant names none.
    let usual: Int

    /// A named effort is lowered until the animation can be encoded within ``allowance``. If the variant names none,
    /// ``usual`` is lowered until the animation can be encoded within a third of ``allowance``. If even the lowest
    /// effort takes longer, that effort is used. ``check(_:_:)`` refuses animations that exceed ``allowance`` with it.
    func effort(_ wanted: Int?, for outline: AnimationOutline) -> Int {
        let most = wanted.map { _ in Self.allowance } ?? Self.allowance / 3
        let allowed = slowness.keys.filter { $0 <= wanted ?? usual }.sorted()
        return allowed.last { outline.cost(slowness[$0] ?? 1) <= most } ?? slowness.keys.min() ?? 0
    }

    func slowness(_ wanted: Int?, for outline: AnimationOutline) -> Int {
        slowness[effort(wanted, for: outline)] ?? 1
    }

    /// - Throws: class `encode` if the animation would take too long at any effort.
    func check(_ outline: AnimationOutline, _ format: String) throws(Failure) {
        let least = slowness.values.min() ?? 1
        guard outline.cost(least) > Self.allowance else { return }
        throw Failure(
            .encode,
            "\(outline.frames) frames of \(outline.size.width)×\(outline.size.height) pixels are more than an animated "
                + "\(format) can be encoded of in time, \(Self.allowance / least / 1_000_000) million pixels "
                + "in all; ask for a smaller picture, or for webp.")
    }
}

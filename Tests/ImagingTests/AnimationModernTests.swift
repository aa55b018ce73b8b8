import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

/// The common parts of animated AVIF and JPEG XL: files are written and read back.
@Suite("Animated AVIF and JPEG XL", .timeLimit(.minutes(15)))
struct AnimationModernTests {
    static let formats: [VariantSpec.Output] = [.avif, .jxl]
    private static let durations = [50, 60, 1_000, 17, 33, 70]

    /// Stripes with holes and half-transparent ones, of another colour in each frame.
    static func pixel(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
        let alpha: UInt8 = [0, 60, 128, 201, 255][(x / 6 + y / 5 + number) % 5]
        return Pixel(red: UInt8(30 * number), green: UInt8(x * 4 & 255), blue: UInt8(y * 5 & 255), alpha: alpha)
    }

    /// A ball before a slope, without transparency.
    static func ball(_ x: Int, _ y: Int, _ number: Int) -> Pixel {
        let isBall = (x - 10 - number * 4) * (x - 10 - number * 4) + (y - 20) * (y - 20) < 64
        return isBall
            ? Pixel(red: 230, green: 40, blue: 30)
            : Pixel(red: UInt8(x * 3 & 255), green: 120, blue: UInt8(y * 4 & 255))
    }

    static func made(
        _ format: VariantSpec.Output, _ options: String = "", _ width: Int = 50, _ height: Int = 41, loopCount: Int = 0,
        durations: [Int] = durations, pixel: (Int, Int, Int) -> Pixel,
    ) throws -> [UInt8] {
        let spec = try VariantSpec.parse("v=x,\(format.rawValue)\(options)")
        let saver = try #require(format.imageFormat.definition.saver?.animated(spec))
        return try encoded(
            width, height, durations: durations,
            sink: { file, size in
                let outline = AnimationOutline(size: size, frames: durations.count, loopCount: loopCount)
                return try saver.begin(file, outline, strength: saver.strength, AnimationMetadata())
            }, pixel: pixel)
    }

    private static func bytes(_ width: Int, _ height: Int, _ number: Int, _ pixel: (Int, Int, Int) -> Pixel) -> [UInt8]
    {
        Film.visible(
            (0..<(width * height)).flatMap { place in
                let pixel = pixel(place % width, place / width, number)
                return [pixel.red, pixel.green, pixel.blue, pixel.alpha].map { UInt8($0) }
            })
    }

    @Test(arguments: formats) func `Lossless frames have the same pixels`(format: VariantSpec.Output) throws {
        let film = try Film(Self.made(format, ",lossless", loopCount: 3, pixel: Self.pixel))
        #expect(film.size == PixelSize(width: 50, height: 41) && film.loopCount == 3)
        #expect(film.durations == Self.durations)
        #expect(film.frames == (0..<6).map { Self.bytes(50, 41, $0, Self.pixel) })
    }

    @Test(arguments: formats, [(",q95", 4.0), (",q60", 9), (",q20", 25)])
    func `Lossy frames are near to the source`(format: VariantSpec.Output, quality: (String, Double)) throws {
        let film = try Film(Self.made(format, quality.0, 96, 64, pixel: Self.ball))
        #expect(film.frames.count == 6 && film.durations == Self.durations)
        for (number, frame) in film.frames.enumerated() {
            let expected = Self.bytes(96, 64, number, Self.ball)
            #expect(stride(from: 3, to: frame.count, by: 4).allSatisfy { frame[$0] == 255 })
            let difference = zip(frame, expected).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
            #expect(Double(difference) / Double(frame.count) < quality.1, "\(number)")
        }
    }

    @Test(arguments: formats, [0, 1, 2, 500, 65_535])
    func `The loop count is written and read`(format: VariantSpec.Output, count: Int) throws {
        let file = try Self.made(format, ",q30", 16, 16, loopCount: count, durations: [50, 70], pixel: Self.ball)
        let film = try Film(file)
        #expect(film.loopCount == count && film.durations == [50, 70])
    }

    @Test(arguments: formats) func `The same frames give the same bytes, also a second later`(
        format: VariantSpec.Output
    )
        async throws
    {
        let first = try Self.made(format, pixel: Self.pixel)
        // libavif writes the second in which a file is made.
        try await Task.sleep(for: .milliseconds(1_100))
        #expect(try Self.made(format, pixel: Self.pixel) == first)
    }

    /// The loop count of an AVIF is written into boxes with durations of their own.
    @Test(arguments: ["mvhd", "mdhd"])
    func `Boxes with an overflowing duration are left unchanged`(name: String) throws {
        var file = try Self.made(.avif, loopCount: 2, pixel: Self.ball)
        func head() -> AVIFPlays? { file.withUnsafeBytes { AVIFPlays($0, count: 3) } }
        let before = try #require(head())
        // libavif 1.0 and later write it themselves, and nothing is added.
        guard before.bytes.count > before.length else { return }
        let box = try #require(file.firstRange(of: Array(name.utf8)))
        file.replaceSubrange(box.upperBound + 24..<box.upperBound + 32, with: [UInt8](repeating: 0xFF, count: 8))
        #expect(head() == nil)
    }

    @Test(arguments: formats) func `An animation is converted into every animated format`(format: VariantSpec.Output)
        throws
    {
        let source = try Self.made(format, ",lossless", loopCount: 4, pixel: Self.ball)
        #expect(try facts(source).frames == 6 && facts(source).width == 50)
        let made = try make(
            source,
            "a=x,webp,lossless b=25x,gif c=x,png d=25x,avif e=25x,jxl f=25x g=x,jpeg h=25x,decode-first-frame-only")
        let names = made.report.renditions.map(\.formatName)
        #expect(names == ["webp", "gif", "png", "avif", "jxl", format.rawValue, "jpeg", format.rawValue])
        for (file, name) in zip(made.files.prefix(6), names) {
            let film = try Film(file)
            let durations = name == "gif" ? [50, 60, 1_000, 20, 30, 70] : Self.durations
            #expect(film.durations == durations && film.loopCount == 4, "\(name)")
        }
        #expect(try Film(made.files[0]).frames == Film(source).frames)
        #expect(try Film(made.files[2]).frames == Film(source).frames)
        #expect(try facts(made.files[6]).frames == 1 && facts(made.files[7]).frames == 1)
    }

    @Test(arguments: formats) func `A GIF is converted without loss`(format: VariantSpec.Output) throws {
        var gif = TestGIF(width: 60, height: 40, loopCount: nil)
        gif.frames = (0..<4).map { TestGIF.Frame(60, 40, seed: $0) }
        let film = try Film(make(one: gif.bytes, "60x,\(format),lossless"))
        #expect(try film.frames == Film(gif.bytes).frames)
        #expect(film.durations == [100, 100, 100, 100] && film.loopCount == 1)
    }

    /// libjxl reports a profile of every JPEG XL, which a variant leaves out, so those are encoded anew.
    @Test(arguments: ["avif", "avif,lossless"])
    func `An animation that equals the variant is passed through`(format: String) throws {
        let words = format.split(separator: ",").map(String.init)
        let output = try #require(VariantSpec.Output(rawValue: words[0]))
        let options = words.count > 1 ? ",lossless" : ""
        let source = try Self.made(output, options, loopCount: 2, pixel: Self.pixel)
        #expect(try make(one: source, "x,\(output)") == source)
    }

    @Test(arguments: formats) func `Effects are applied to every frame with transform-animated-image`(
        format: VariantSpec.Output
    ) throws {
        let source = try Self.made(format, ",lossless", pixel: Self.ball)
        let film = try Film(make(one: source, "x,\(format),lossless,invert,transform-animated-image"))
        let before = try Film(source)
        #expect(film.durations == before.durations)
        #expect(zip(film.frames, before.frames).allSatisfy { Int($0[0]) == 255 - Int($1[0]) })
    }

    @Test(arguments: formats) func `Metadata and profiles are kept`(format: VariantSpec.Output) throws {
        let source = try Self.made(format, ",lossless", pixel: Self.ball)
        var metadata = AnimationMetadata()
        metadata.exif = try #require(
            CopyrightBlock { $0.hasSuffix("Artist") ? "Ann (Ann, ASCII, 4 components, 4 bytes)" : nil }
        )
        .bytes.dropFirst(6).map { $0 }
        metadata.xmp = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'></x:xmpmeta>".utf8)
        let spec = try VariantSpec.parse("v=x,\(format.rawValue)")
        let saver = try #require(format.imageFormat.definition.saver?.animated(spec))
        let tagged = try encoded(
            50, 41, durations: [50, 60],
            sink: { try saver.begin($0, AnimationOutline(size: $1, frames: 2, loopCount: 2), strength: 60, metadata) },
            pixel: Self.ball)
        #expect(try Film(tagged).durations == [50, 60] && Film(tagged).loopCount == 2)
        try tagged.withUnsafeBytes { bytes in
            let picture = try Picture(of: bytes, as: format.imageFormat)
            #expect(picture.text("exif-ifd0-Artist")?.hasPrefix("Ann") == true)
            #expect(picture.metadataFields.contains("xmp-data"))
        }
        // It has what a variant leaves out, so it isn't passed through.
        let plain = try make(one: tagged, "x,\(format),strip-copyright")
        #expect(plain != tagged && String(decoding: plain, as: UTF8.self).contains("xmpmeta") == false)
        #expect(source.count > 0)
    }

    @Test(arguments: formats) func `An animation is encoded within max-bytes`(format: VariantSpec.Output) throws {
        let source = try Self.made(.jxl, ",lossless", 96, 64, pixel: Self.ball)
        let whole = try make(one: source, "90x,\(format),q90").count
        let least = try make(one: source, "90x,\(format),q1").count
        let most = (whole + least) / 2
        let file = try make(one: source, "90x,\(format),q90,max-bytes:\(most)")
        #expect(file.count <= most)
        #expect(try Film(file).durations == Self.durations)
        #expect(failure { _ = try make(one: source, "90x,\(format),max-bytes:90") } == .encode)
        #expect(failure { _ = try make(one: source, "90x,\(format),lossless,max-bytes:90") } == .encode)
    }

    // MARK: - Limits

    @Test(arguments: formats) func `Limits are checked before any frame is decoded`(format: VariantSpec.Output) throws {
        let source = try Self.made(format, pixel: Self.ball)
        for limits in [ImageLimits(frames: 5), ImageLimits(animationPixels: 6 * 50 * 41 - 1)] {
            #expect(failure { _ = try make(source, "a=9x,webp", limits: limits) } == .tooManyPixels)
            #expect(failure { _ = try Film(source, limits: limits) } == .tooManyPixels)
            // A still of it is still to be had.
            #expect(failure { _ = try make(source, "a=9x,jpeg", limits: limits) } == nil)
        }
        #expect(failure { _ = try make(source, "a=9x", limits: ImageLimits(pixels: 2_000)) } == .tooManyPixels)
    }

    @Test(arguments: formats) func `An animation that takes too long to encode is refused`(format: VariantSpec.Output)
        throws
    {
        let spec = try VariantSpec.parse("v=x,\(format.rawValue)")
        let saver = try #require(format.imageFormat.definition.saver?.animated(spec))
        let outline = AnimationOutline(size: PixelSize(width: 1_000, height: 1_000), frames: 61, loopCount: 0)
        try withFile([]) { file in
            #expect(failure { _ = try saver.begin(file, outline, strength: 50, AnimationMetadata()) } == .encode)
            let huge = AnimationOutline(size: PixelSize(width: 8_000, height: 7_000), frames: 1, loopCount: 0)
            #expect(failure { _ = try saver.begin(file, huge, strength: 50, AnimationMetadata()) } == .encode)
            let endless = AnimationOutline(size: PixelSize(width: .max, height: 7), frames: .max, loopCount: 0)
            #expect(failure { _ = try saver.begin(file, endless, strength: 50, AnimationMetadata()) } == .encode)
        }
        #expect(saver.slowness(outline) == 2)
    }

    @Test(arguments: formats) func `A cut file is truncated`(format: VariantSpec.Output) throws {
        let whole = try Self.made(format, pixel: Self.ball)
        for cut in Array(stride(from: 40, to: whole.count, by: max(7, whole.count / 60))) + [whole.count - 1] {
            let part = Array(whole.prefix(cut))
            for specs in ["a=20x,webp", "a=20x,\(format.rawValue) b=9x,jpeg", ""] {
                let code = failure { _ = try make(part, specs) }
                #expect(code == .truncated || cut < 1_000 && code == .badImage, "\(cut) \(specs)")
            }
        }
    }

    @Test(arguments: formats) func `Mutated animations succeed or fail with a class`(format: VariantSpec.Output) throws
    {
        var random = SystemRandomNumberGenerator()
        let seeds = [
            try Self.made(format, pixel: Self.ball), try Self.made(format, ",lossless", 20, 16, pixel: Self.pixel),
        ]
        for round in 0..<300 {
            var bytes = seeds[round % seeds.count]
            // Half of them in the boxes at the beginning.
            let end = round % 4 < 2 ? min(1_600, bytes.count) : bytes.count
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                bytes[Int.random(in: 12..<end, using: &random)] = .random(in: 0...255, using: &random)
            }
            let limits = ImageLimits(pixels: 1_000_000, animationPixels: 3_000_000)
            _ = failure { _ = try make(bytes, "a=20x,gif b=9x,jpeg", limits: limits) }
            _ = failure { _ = try Film(bytes, limits: limits) }
        }
    }

    // MARK: - Choosing

    @Test func `The option auto keeps the smallest animated format`() throws {
        let source = try Self.made(.jxl, ",lossless", 96, 64, loopCount: 3, pixel: Self.ball)
        let single = try ["webp", "avif", "jxl"].map { ($0, try make(one: source, "90x,\($0)")) }
        let smallest = try #require(single.min { $0.1.count < $1.1.count })
        for spec in ["90x,auto:webp+avif+jxl+jpeg", "90x,auto:avif+webp+jxl"] {
            let made = try make(source, "v=\(spec)")
            #expect(made.files[0] == smallest.1 && made.report.renditions[0].formatName == smallest.0)
        }
        #expect(try Film(make(one: source, "90x,auto")).loopCount == 3)
        // What is kept is the same beside others.
        let both = try make(source, "a=90x,auto b=40x,webp c=x,auto:jpeg+tiff")
        #expect(both.files[0] == (try make(one: source, "90x,auto")))
        #expect(both.files[1] == (try make(one: source, "40x,webp")))
        #expect(both.report.renditions[2].formatName == "jpeg" || both.report.renditions[2].formatName == "tiff")
        // Png alone can move, and is kept for what has an alpha.
        #expect(try make(source, "v=40x,auto:png+jpeg").report.renditions[0].formatName == "png")
        let small = try make(source, "v=90x,auto,max-bytes:\(smallest.1.count - 60)")
        #expect(small.files[0].count <= smallest.1.count - 60)
        #expect(try Film(small.files[0]).durations == Self.durations)
    }

    @Test func `A named effort is lowered until the animation can be encoded in time`() {
        let efforts = AnimationEfforts(slowness: [1: 2, 2: 20, 3: 200], usual: 2)
        func outline(_ frames: Int) -> AnimationOutline {
            AnimationOutline(size: PixelSize(width: 1_000, height: 100), frames: frames, loopCount: 0)
        }
        #expect([1, 20, 21, 60, 500].map { efforts.effort(nil, for: outline($0)) } == [2, 2, 1, 1, 1])
        #expect([1, 6, 7, 60, 61].map { efforts.effort(3, for: outline($0)) } == [3, 3, 2, 2, 1])
        #expect(efforts.effort(1, for: outline(1)) == 1)
    }
}

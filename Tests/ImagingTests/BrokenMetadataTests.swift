import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// A picture with broken metadata is converted into every format.
@Suite(.timeLimit(.minutes(15)))
struct BrokenMetadataTests {
    private static let picture = TestImages.png(24, 16)
    private static let formats = ["jpeg", "png", "webp", "gif", "tiff", "avif,effort:0", "jxl,effort:3"]

    /// One decode each: with everything kept, and with nothing.
    private static let specs = ["keep-metadata,keep-profile", "strip-copyright"].map { options in
        formats.enumerated().map { "v\($0.offset)=12x,\($0.element),\(options)" }.joined(separator: " ")
    }

    /// Its size, and pixels like those of the picture without metadata.
    private static func check(_ name: String, _ source: [UInt8], like simple: [UInt8], within tolerance: Double = 8) {
        for specs in Self.specs + [""] {
            var made: Made?
            let end = failure { made = try make(source, specs) }
            #expect(end == nil, "\(name), '\(specs)'")
            guard let made else { continue }
            #expect((made.report.facts.width, made.report.facts.height) == (24, 16), "\(name)")
            #expect(made.report.facts.damage == nil)
            guard let file = made.files.dropFirst().first else { continue }
            let difference = try? Raster(file).difference(to: Raster(make(one: simple, "12x,png")))
            #expect(difference ?? 255 < tolerance, "\(name)")
        }
    }

    @Test func aPictureWithBrokenEXIFIsStillMade() throws {
        let (jpeg, webp, jxl) = try (
            make(one: Self.picture, "x,jpeg"), make(one: Self.picture, "x,webp"), make(one: Self.picture, "x,jxl")
        )
        #expect(jxl.starts(with: [0xFF, 0x0A]))
        for (name, block) in BrokenMetadata.exif {
            let whole = Array("Exif\0\0".utf8) + block
            let segment = Carrier.segment(0xE1, whole)
            Self.check("jpeg, \(name)", Carrier.jpeg(jpeg, [segment]), like: jpeg)
            Self.check("jpeg twice, \(name)", Carrier.jpeg(jpeg, [segment, segment]), like: jpeg)
            Self.check(
                "png, \(name)", Carrier.png(Self.picture, [TestImages.pngChunk("eXIf", block)]), like: Self.picture)
            Self.check("webp, \(name)", Carrier.webp(webp, (24, 16), exif: block), like: webp)
            Self.check("webp with a name, \(name)", Carrier.webp(webp, (24, 16), exif: whole), like: webp)
            for start: [UInt8] in [[], [0, 0], [0, 0, 0, 0], [0, 0, 0, 6], [0xFF, 0xFF, 0xFF, 0xFF]] {
                Self.check("jxl, \(start), \(name)", Carrier.jxl(jxl, [("Exif", start + block)]), like: jxl)
            }
        }
    }

    /// Segments whose lengths are wrong, and signatures that end early.
    @Test func aPictureWithBrokenSegmentsIsStillMade() throws {
        let jpeg = try make(one: Self.picture, "x,jpeg")
        let exif = Array("Exif\0\0II".utf8) + [42, 0, 8, 0, 0, 0, 0, 0]
        for length in 0...6 {
            let segment = Carrier.segment(0xE1, Array(exif.prefix(length)))
            Self.check("a signature of \(length) bytes", Carrier.jpeg(jpeg, [segment]), like: jpeg)
        }
        // What stands between segments is passed over.
        let short = Carrier.segment(0xE1, exif, length: 10)
        Self.check("a segment that goes on behind its end", Carrier.jpeg(jpeg, [short]), like: jpeg)
        for (name, block) in BrokenMetadata.xmp {
            let segment = Carrier.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + block)
            let more = Carrier.segment(0xE1, Array("http://ns.adobe.com/xmp/extension/\0".utf8) + block)
            Self.check("jpeg, \(name)", Carrier.jpeg(jpeg, [segment, more, segment]), like: jpeg)
        }
        for (name, block) in BrokenMetadata.photoshop {
            let segment = Carrier.segment(0xED, Array("Photoshop 3.0\0".utf8) + block)
            Self.check("jpeg, \(name)", Carrier.jpeg(jpeg, [segment]), like: jpeg)
            Self.check("jpeg twice, \(name)", Carrier.jpeg(jpeg, [segment, segment]), like: jpeg)
        }
    }

    @Test func aPictureWithBrokenXMPIsStillMade() throws {
        let (webp, jxl) = try (make(one: Self.picture, "x,webp"), make(one: Self.picture, "x,jxl"))
        let gif = try make(one: Self.picture, "x,gif")
        for (name, block) in BrokenMetadata.xmp {
            let text = TestImages.pngChunk("iTXt", Array("XML:com.adobe.xmp\0\0\0\0\0".utf8) + block)
            let packed = TestImages.pngChunk("iTXt", Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0] + block)
            let raw = TestImages.pngChunk("zTXt", Array("Raw profile type exif\0\0".utf8) + block)
            let bare = TestImages.pngChunk("tEXt", Array("Raw profile type iptc\0\niptc\n 99\n".utf8) + block)
            for chunk in [text, packed, raw, bare] {
                Self.check("png, \(name)", Carrier.png(Self.picture, [chunk]), like: Self.picture)
            }
            Self.check("webp, \(name)", Carrier.webp(webp, (24, 16), xmp: block), like: webp)
            Self.check(
                "jxl, \(name)", Carrier.jxl(jxl, [("xml ", block), ("brob", Array("Exif".utf8) + block)]), like: jxl)
            Self.check("gif, \(name)", Carrier.gif(gif, "XMP DataXMP", block), like: gif)
        }
    }

    @Test func aPictureWithABrokenProfileIsStillMade() throws {
        let (jpeg, webp) = try (make(one: Self.picture, "x,jpeg"), make(one: Self.picture, "x,webp"))
        let gif = try make(one: Self.picture, "x,gif")
        let tiff = TestImages.tiff(24, 16)
        for (name, profile) in BrokenMetadata.profiles {
            let start = Array("ICC_PROFILE\0".utf8)
            // A part's number and how many there are.
            for (part, count) in [(1, 1), (0, 0), (1, 0), (2, 1), (1, 3), (255, 255)] as [(UInt8, UInt8)] {
                let segment = Carrier.segment(0xE2, start + [part, count] + profile)
                Self.check(
                    "jpeg, \(name), part \(part) of \(count)", Carrier.jpeg(jpeg, [segment]), like: jpeg, within: 70)
            }
            let twice = Carrier.segment(0xE2, start + [1, 2] + profile)
            Self.check(
                "jpeg, the same part twice, \(name)", Carrier.jpeg(jpeg, [twice, twice]), like: jpeg, within: 70)
            Self.check(
                "png, \(name)", Carrier.png(Self.picture, [TestImages.pngProfileChunk(profile)]), like: Self.picture,
                within: 70)
            Self.check("webp, \(name)", Carrier.webp(webp, (24, 16), profile: profile), like: webp, within: 70)
            Self.check("gif, \(name)", Carrier.gif(gif, "ICCRGBG1012", profile), like: gif, within: 70)
            let samples = Array(tiff[8..<(8 + 24 * 16 * 3)])
            let carrier = TestImages.tiff(
                24, 16, samples: samples, channels: 3, photometric: 2, profile: profile)
            Self.check("tiff, \(name)", carrier, like: tiff, within: 70)
        }
        for content in [[], [0], Array("no profile's name".utf8), Array("test".utf8) + [0, 0, 1, 2, 3]] as [[UInt8]] {
            let source = Carrier.png(Self.picture, [TestImages.pngChunk("iCCP", content)])
            Self.check("png, \(content)", source, like: Self.picture)
        }
    }

    @Test func aTIFFWithBrokenTagsIsStillMade() {
        let tiff = TestImages.tiff(24, 16)
        let samples = Array(tiff[8..<(8 + 24 * 16 * 3)])
        let places = [0, 4, 8, 0x7FFF_FFFF, 0xFFFF_FFFF]
        for tag in [700, 33_723, 34_377, 34_665, 34_853, 40_965, 270, 315, 33_432] {
            for place in places {
                let source = TestImages.tiff(
                    24, 16, samples: samples, channels: 3, photometric: 2, tags: [(tag, 4, [place])])
                Self.check("tag \(tag) of \(place)", source, like: tiff)
            }
        }
        for orientation in [0, 9, 255, 65_535] {
            let source = TestImages.tiff(
                24, 16, samples: samples, channels: 3, photometric: 2, tags: [(274, 3, [orientation])])
            Self.check("orientation \(orientation)", source, like: tiff)
        }
    }

    @Test func anAVIFWithBrokenMetadataIsStillMade() throws {
        let jpeg = try make(one: Self.picture, "x,jpeg")
        let block = Array("Exif\0\0II".utf8) + [42, 0, 8, 0, 0, 0, 1, 0, 0x3B, 1, 2, 0, 4, 0, 0, 0, 65, 66, 67, 0]
        let source = Carrier.jpeg(jpeg, [Carrier.segment(0xE1, block + [0, 0, 0, 0])])
        let avif = try make(one: source, "x,avif,keep-metadata")
        let place = try #require(
            (0..<(avif.count - 8)).first { avif[$0..<($0 + 4)].elementsEqual([0x49, 0x49, 42, 0]) })
        // The block begins with how many bytes stand before its header.
        for start in (place - 10)..<(place + 8) {
            var broken = avif
            for offset in start..<min(start + 6, avif.count) { broken[offset] = 0xFF }
            Self.check("avif, from \(start - place) on", broken, like: avif)
        }
        // Where the block lies: a place that all its parts count from, how many parts, and of each a place and a length.
        let list = try #require((0..<place).first { avif[$0..<($0 + 4)].elementsEqual(Array("iloc".utf8)) })
        let number = TestImages.big(place - 10, 4)
        let base = try #require((list..<place).first { avif[$0..<($0 + 4)].elementsEqual(number) })
        for (field, offset) in [("base", base), ("place", base + 6), ("length", base + 10)] {
            for wrong in [[0xFF, 0xFF, 0xFF, 0xF0], [0, 0xFF, 0xFF, 0xFF], [0x7F, 0xFF, 0xFF, 0xFF]] as [[UInt8]] {
                var broken = avif
                broken.replaceSubrange(offset..<(offset + 4), with: wrong)
                Self.check("avif, \(field) of \(wrong)", broken, like: avif)
            }
        }
    }
}

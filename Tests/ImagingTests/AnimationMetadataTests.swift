import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Chunks of animated WebPs beside their frames, put in by libwebp's own tool.
@Suite(.timeLimit(.minutes(15)))
struct AnimationMetadataTests {
    static func film(
        _ width: Int = 24, _ height: Int = 16, frames: Int = 2,
        pixel: (Int, Int, Int) -> Pixel = { _, _, number in
            Pixel(red: 200, green: 120, blue: UInt8(120 + 40 * number))
        },
    ) throws -> [UInt8] {
        try encoded(
            width, height, durations: [Int](repeating: 50, count: frames),
            sink: { try WebPFrameSink($0, size: $1, loopCount: 0, WebPFrameSettings(compression: .lossless())) },
            pixel: pixel)
    }

    /// - Parameter chunks: by `webpmux`' names: `icc`, `exif`, `xmp`.
    static func file(_ film: [UInt8], _ chunks: [(String, [UInt8])]) throws -> [UInt8] {
        try withTemporaryDirectory { directory in
            var current = directory.appending("film.webp")
            try Film.write(film, to: current)
            for (name, bytes) in chunks {
                let chunk = directory.appending(name)
                let next = directory.appending("\(name).webp")
                try Film.write(bytes, to: chunk)
                let status = try ChildProcess.run(
                    "webpmux", ["-set", name, chunk.string, current.string, "-o", next.string])
                #expect(status == 0)
                current = next
            }
            return try Corpus.bytes(current)
        }
    }

    /// What libwebp's own tool says of its chunks.
    static func isValid(_ file: [UInt8]) throws -> Bool {
        try withTemporaryDirectory { directory in
            let path = directory.appending("film.webp")
            try Film.write(file, to: path)
            return try ChildProcess.run("webpinfo", ["-quiet", path.string]) == 0
        }
    }

    static func chunk(_ name: String, of file: [UInt8]) -> [UInt8]? {
        file.withUnsafeBytes { bytes in WebPChunk.all(in: bytes).first { $0.name == name }.map { Array($0.payload) } }
    }

    private static let xmp = Array("<x:xmpmeta xmlns:x='adobe:ns:meta/'><!-- who took it --></x:xmpmeta>".utf8)

    @Test func onlyArtistAndCopyrightAreKept() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann and sons 2024")
        let file = try Self.file(Self.film(), [("exif", exif.bytes), ("xmp", Self.xmp)])
        for spec in ["12x,webp", "24x,webp,q70"] {
            let made = try make(one: file, spec)
            let kept = try #require(Self.chunk("EXIF", of: made))
            #expect(Self.chunk("XMP ", of: made) == nil)
            #expect(kept.contains(Array("Ann and sons 2024".utf8)) && !kept.contains(Array("Box 3".utf8)))
            #expect(try Film(made).durations == [50, 50] && EXIF.isReadable(made))
        }
    }

    @Test func keepMetadataKeepsAllMetadata() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann and sons 2024")
        let file = try Self.file(Self.film(), [("exif", exif.bytes), ("xmp", Self.xmp)])
        let made = try make(one: file, "12x,webp,keep-metadata")
        #expect(Self.chunk("XMP ", of: made) == Self.xmp)
        #expect(Self.chunk("EXIF", of: made)?.contains(Array("Box 3".utf8)) == true)
        #expect(try Self.isValid(made))
        #expect(try Film(made).durations == [50, 50] && EXIF.isReadable(made))
        let anonymous = try make(one: file, "12x,webp,keep-metadata,strip-copyright")
        let kept = try #require(Self.chunk("EXIF", of: anonymous))
        #expect(kept.contains(Array("Box 3".utf8)) && !kept.contains(Array("Ann and sons".utf8)))
    }

    @Test func stripCopyrightRemovesAllMetadata() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann")
        let file = try Self.file(Self.film(), [("exif", exif.bytes), ("xmp", Self.xmp)])
        let made = try make(file, "a=12x,webp,strip-copyright b=12x,gif,strip-copyright c=12x,webp")
        #expect(Self.chunk("EXIF", of: made.files[0]) == nil && !made.files[1].contains(Array("Ann".utf8)))
        #expect(made.files[0] == (try make(one: Self.film(), "12x,webp")))
        #expect(Self.chunk("EXIF", of: made.files[2]) != nil)
    }

    @Test func aGIFHasArtistAndCopyrightInAComment() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann and sons 2024")
        let file = try Self.file(Self.film(), [("exif", exif.bytes), ("xmp", Self.xmp)])
        let made = try make(file, "a=12x,gif b=12x,gif,keep-metadata")
        let comment = Array("Artist: Ann\nCopyright: Ann and sons 2024".utf8)
        #expect(made.files.allSatisfy { $0.contains(comment) && !$0.contains(Array("Box 3".utf8)) })
        #expect(!made.files[0].contains(Self.xmp) && made.files[1].contains(Self.xmp))
        for file in made.files {
            let film = try Film(file)
            #expect(film.durations == [50, 50])
            #expect(film.frames == (try Film.frames(ofFile: file, byImageMagick: film.size)))
        }
    }

    /// A reader that skips blocks by their lengths would end within the packet.
    @Test func anXMPPacketWithAZeroByteIsLeftOutOfAGIF() throws {
        let file = try Self.file(Self.film(), [("xmp", Self.xmp + [0, 0x3B] + Self.xmp)])
        let made = try make(one: file, "12x,gif,keep-metadata")
        #expect(!made.contains(Array("xmpmeta".utf8)))
        #expect(try Film(made).durations == [50, 50])
    }

    @Test func aSingleRemainingFrameKeepsTheMetadata() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann and sons")
        let same = try encoded(
            24, 16, durations: [50, 50],
            sink: { try GIFFrameSink($0, size: $1, loopCount: 0) },
            pixel: { _, _, _ in Pixel(red: 9, green: 9, blue: 9) })
        let moving = try make(one: same, "24x,webp,lossless")
        #expect(Self.chunk("ANIM", of: moving) == nil)
        // What is one frame for libwebp is two for us as long as the file says so.
        let film = try Self.file(
            Self.film(pixel: { x, _, number in Pixel(red: UInt8(x > 22 ? number : 0), green: 1, blue: 1) }),
            [("exif", exif.bytes)])
        let made = try make(one: film, "1x,webp,lossless")
        #expect(Self.chunk("EXIF", of: made)?.contains(Array("Ann and sons".utf8)) == true)
        #expect(try facts(made).width == 1 && EXIF.isReadable(made))
    }

    @Test(arguments: 1...8) func theOrientationOfFramesIsAppliedOnce(orientation: Int) throws {
        // White where it begins, and another colour along it.
        let film = try Self.film(pixel: { x, y, number in
            x < 6 && y < 4
                ? Pixel(red: 255, green: 255, blue: 255) : Pixel(red: 20, green: 90, blue: UInt8(number * 50))
        })
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann", orientation: orientation)
        let file = try Self.file(film, [("exif", exif.bytes)])
        let isTurned = orientation >= 5
        #expect(try facts(file).width == (isTurned ? 16 : 24))
        let made = try make(file, "a=x,webp,lossless,keep-metadata b=x,gif c=x,png")
        for file in made.files.prefix(2) {
            let film = try Film(file)
            #expect(film.size == (isTurned ? PixelSize(width: 16, height: 24) : PixelSize(width: 24, height: 16)))
            let still = try Raster(made.files[2])
            for y in 0..<film.size.height {
                for x in 0..<film.size.width {
                    let start = (y * film.size.width + x) * 4
                    #expect(film.frames[0][start..<(start + 3)].map(Int.init) == Array(still[x, y].prefix(3)))
                }
            }
        }
        // The tag doesn't turn it a second time.
        #expect(try facts(made.files[0]).width == (isTurned ? 16 : 24))
    }

    @Test(arguments: ["icc", "xmp"]) func fiftyMegabytesOfMetadataAreLeftOutOrKept(chunk: String) throws {
        let file = try Self.file(Self.film(), [(chunk, [UInt8](repeating: 0x41, count: 50 << 20))])
        let made = try make(file, "a=12x,webp b=12x,gif c=12x,webp,keep-profile")
        #expect(made.files.allSatisfy { $0.count < 5_000 }, "\(made.files.map(\.count))")
        #expect(try made.files.allSatisfy { try Film($0).durations == [50, 50] })
        let kept = try make(one: file, "12x,webp,keep-metadata")
        #expect(try Film(kept).durations == [50, 50] && kept.count < file.count + 5_000)
    }

    /// libvips reads no more than eight megabytes.
    @Test func unreadableMetadataIsLeftOut() throws {
        let exif = EXIF(camera: "Box 3", artist: "Ann", copyright: "Ann").bytes
        let large = exif + [UInt8](repeating: 0x41, count: 50 << 20)
        for noise in [Array("Exif".utf8), [UInt8](repeating: 0xFF, count: 3_000), [0], large] {
            let file = try Self.file(Self.film(), [("exif", noise), ("xmp", Self.xmp)])
            #expect(try make(one: file, "12x,webp") == make(one: Self.film(), "12x,webp"))
            let kept = try make(one: file, "12x,webp,keep-metadata")
            #expect(Self.chunk("XMP ", of: kept) == Self.xmp)
            #expect(try Film(kept).durations == [50, 50] && kept.count < 5_000)
        }
    }
}

/// An EXIF block, as TIFF 6.0 and the EXIF specification have it.
struct EXIF {
    var camera: String
    var artist: String
    var copyright: String
    var orientation = 1

    var bytes: [UInt8] {
        let little = TestImages.little
        var entries: [UInt8] = []
        var texts: [UInt8] = []
        func add(_ tag: Int, _ text: String) {
            let text = Array(text.utf8) + [0]
            entries += little(tag, 2) + little(2, 2) + little(text.count, 4)
            if text.count <= 4 {
                entries += text + [UInt8](repeating: 0, count: 4 - text.count)
            } else {
                entries += little(8 + 2 + 4 * 12 + 4 + texts.count, 4)
                texts += text
            }
        }
        add(0x010F, camera)
        entries += little(0x0112, 2) + little(3, 2) + little(1, 4) + little(orientation, 4)
        add(0x013B, artist)
        add(0x8298, copyright)
        return Array("II".utf8) + little(42, 2) + little(8, 4) + little(4, 2) + entries + little(0, 4) + texts
    }

    /// Whether libvips finds it in the file, and an artist in it.
    static func isReadable(_ file: [UInt8]) throws -> Bool {
        try file.withUnsafeBytes { try Picture(of: $0, as: .webp).text("exif-ifd0-Artist")?.hasPrefix("Ann") == true }
    }
}

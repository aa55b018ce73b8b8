import Foundation
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// AVIFs with premultiplied alpha, as `avifenc --premultiply` writes them.
@Suite(.timeLimit(.minutes(15)))
struct PremultipliedTests {
    /// Eight columns of alpha 0 to 255, and eight rows of (200, 100 + 8y, 30); with XMP.
    private static let bytes = decoded(
        """
        AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAAHjbWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aW
        YAAAAADnBpdG0AAAAAAAEAAAA6aWxvYwAAAABEAAADAAEAAAABAAACYQAAAHUAAgAAAAEAAAI/AAAAIgADAAAAAQAAAgsAAAA0AAAAbmlpbmYA
        AAAAAAMAAAAaaW5mZQIAAAAAAQAAYXYwMUNvbG9yAAAAABppbmZlAgAAAAACAABhdjAxQWxwaGEAAAAALGluZmUCAAAAAAMAAG1pbWVYTVAAYX
        BwbGljYXRpb24vcmRmK3htbAAAAAA2aXJlZgAAAAAAAAAOcHJlbQABAAEAAgAAAA5hdXhsAAIAAQABAAAADmNkc2MAAwABAAEAAADDaXBycAAA
        AJ1pcGNvAAAAFGlzcGUAAAAAAAAACAAAAAgAAAAQcGl4aQAAAAADCAgIAAAADGF2MUOBIAAAAAAAE2NvbHJuY2x4AAEADQAGgAAAAA5waXhpAA
        AAAAEIAAAADGF2MUOBABwAAAAAOGF1eEMAAAAAdXJuOm1wZWc6bXBlZ0I6Y2ljcDpzeXN0ZW1zOmF1eGlsaWFyeTphbHBoYQAAAAAeaXBtYQAA
        AAAAAAACAAEEAQKDBAACBAEFhgcAAADTbWRhdDx4OnhtcG1ldGEgeG1sbnM6eD0iYWRvYmU6bnM6bWV0YS8iPmtlcHQ8L3g6eG1wbWV0YT4SAA
        oFGAi/YVAyFxAAhtKJKaKk84Rm00yMM3INmfp+ne50EgAKCDgIv2EBDQaQMmcQAACMHy1695MQDfBFDtj+88ZCPK7Vt7GAtsxv1IALAkaEYsiU
        aaBiWloUxilUTXJCZhw3P6Sk8ZnmY4eb0S4kQ0WDPmv5XD231ViQUIP6PLgUg1QqNJUZtd4Zthwjr8y//1n1j0Yg
        """)

    /// The same, of ten bits a channel.
    private static let deep = decoded(
        """
        AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUEAAAGbbWV0YQAAAAAAAAAoaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAGxpYmF2aW
        YAAAAADnBpdG0AAAAAAAEAAAAsaWxvYwAAAABEAAACAAEAAAABAAAB6QAAALoAAgAAAAEAAAHDAAAAJgAAAEJpaW5mAAAAAAACAAAAGmluZmUC
        AAAAAAEAAGF2MDFDb2xvcgAAAAAaaW5mZQIAAAAAAgAAYXYwMUFscGhhAAAAAChpcmVmAAAAAAAAAA5wcmVtAAEAAQACAAAADmF1eGwAAgABAA
        EAAADDaXBycAAAAJ1pcGNvAAAAFGlzcGUAAAAAAAAACAAAAAgAAAAQcGl4aQAAAAADCgoKAAAADGF2MUOBIEAAAAAAE2NvbHJuY2x4AAEADQAG
        gAAAAA5waXhpAAAAAAEKAAAADGF2MUOBAFwAAAAAOGF1eEMAAAAAdXJuOm1wZWc6bXBlZ0I6Y2ljcDpzeXN0ZW1zOmF1eGlsaWFyeTphbHBoYQ
        AAAAAeaXBtYQAAAAAAAAACAAEEAQKDBAACBAEFhgcAAADobWRhdBIACgUYCL9jUDIbEACG0okpolbvyno0YDGC7h35vWhtmEfIFisGEgAKCDgI
        v2MBDQaQMqsBEAAAjHKK8dxvUVaJihh5CrA8Wb68KURK417TcAHWtPvAG12Zu107P6b/znthwdlN5Rye0rRCLLeDtQIfwIcbtwgf8qIkZjT8i6
        JR8U+Cy+lekXgKG8WG+UTbUVBU0CpFESCKc6hVhWSiDZ/0nDT0i+e14gMImf1C7vYgTgXFsB2160DkS3DpinASjjmFc4n2DYDOizldnwuF4m+P
        X1Kr6V+nrxz8+t7mhAHE
        """)

    private static func decoded(_ text: String) -> [UInt8] {
        [UInt8](Data(base64Encoded: text.filter { !$0.isWhitespace }) ?? Data())
    }

    private static let alphas = [0, 3, 40, 85, 128, 170, 220, 255]

    @Test(arguments: [bytes, deep]) func premultipliedColoursAreUnmultiplied(source: [UInt8]) throws {
        #expect(try facts(source).hasAlpha)
        let raster = try Raster(make(one: source, "x,png"))
        for (x, alpha) in Self.alphas.enumerated() {
            for y in 0..<8 {
                let pixel = raster[x, y]
                #expect(abs(pixel[3] - alpha) <= 1, "\(x), \(y)")
                // Few steps are left of colours that hardly show.
                let room = alpha == 0 ? 255 : 2 + 384 / alpha
                #expect(isNear(Array(pixel.prefix(3)), [200, 100 + 8 * y, 30], within: room), "\(x), \(y): \(pixel)")
            }
        }
        let small = try Raster(make(one: source, "4x,png"))
        #expect(isNear(Array(small[3, 1].prefix(3)), [200, 120, 30], within: 4), "\(small[3, 1])")
    }

    @Test func metadataOfAPremultipliedAVIFAreKept() throws {
        let kept = try make(one: Self.bytes, "x,webp,lossless,keep-metadata")
        #expect(kept.contains(Array("<x:xmpmeta xmlns".utf8)))
        #expect(try isNear(Array(Raster(kept)[4, 3].prefix(3)), [200, 124, 30], within: 4))
    }

    /// The reference must go from the picture to its alpha item.
    @Test func onlyAReferenceToThePicturesAlphaMeansPremultiplied() throws {
        func isPremultiplied(_ file: [UInt8]) -> Bool {
            file.withUnsafeBytes { HEIFReferences(ByteReader($0)).isPremultiplied }
        }
        #expect(isPremultiplied(Self.bytes) && isPremultiplied(Self.deep))
        #expect(!isPremultiplied(SampleImage.bytes(of: .avif)) && !isPremultiplied(SampleImage.bytes(of: .heic)))
        let name = try #require(Self.bytes.firstRange(of: Array("prem".utf8)))
        for (place, byte) in [(0, UInt8(ascii: "d")), (5, 2), (7, 200), (9, 3)] {
            var other = Self.bytes
            other[name.lowerBound + place] = byte
            #expect(!isPremultiplied(other), "\(place)")
        }
        var random = SeededGenerator(seed: 11)
        for _ in 0..<5_000 {
            var other = Self.bytes
            for _ in 0..<4 { other[Int.random(in: 0..<420, using: &random)] = .random(in: 0...255, using: &random) }
            _ = isPremultiplied(other)
            _ = isPremultiplied(Array(other.prefix(.random(in: 0..<other.count, using: &random))))
        }
    }
}

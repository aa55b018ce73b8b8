import Core
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

@Suite(.timeLimit(.minutes(15)))
struct RuntimeTests {
    @Test func everyFormatDecodesAndEveryOutputEncodesHere() {
        let formats = ImagingRuntime.supportedFormats()
        #expect(formats.decode == ImageFormat.allCases)
        #expect(formats.encode == VariantSpec.Output.allCases.map(\.imageFormat))
    }

    @Test func startingTheRuntimeAgainChangesNothing() throws {
        for _ in 0..<3 { try ImagingRuntime.start() }
    }

    @Test func theCoderVersionNamesTheEncodersLibraries() {
        let version = ImagingRuntime.coderVersion
        #expect(version.hasPrefix("vips 8.") && version.hasSuffix("pipeline 13"))
        #expect([" webp ", " avif ", " aom ", " jxl "].allSatisfy(version.contains))
    }
}

import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging
@testable import Variants

#if canImport(Glibc)
    import Glibc
#endif

/// What was encoded and what was said of it.
struct Made {
    let report: TransformReport
    let files: [[UInt8]]
}

/// An unnamed file with these bytes, for as long as `body` runs.
func withFile<Result>(_ bytes: [UInt8], _ body: (FileDescriptor) throws -> Result) throws -> Result {
    let path = FilePath("/tmp/imaging-\(UInt64.random(in: 0 ... .max))")
    let file = try FileDescriptor.open(
        path, .readWrite, options: [.create, .exclusiveCreate], permissions: [.ownerReadWrite])
    return try file.closeAfter {
        try unlinked(path)
        try file.writeAll(bytes)
        try file.seek(offset: 0, from: .start)
        return try body(file)
    }
}

private func unlinked(_ path: FilePath) throws {
    guard unlink(path.string) == 0 else { throw Errno(rawValue: errno) }
}

func readAll(_ file: FileDescriptor) throws -> [UInt8] {
    let count = Int(try file.seek(offset: 0, from: .end))
    return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
        filled = try file.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
    }
}

/// Makes the variants of `source` that are named in short.
func make(
    _ source: [UInt8], _ specs: String, limits: ImageLimits = ImageLimits(),
    extensions: ImagingExtensions = ImagingExtensions(), tolerance: DecodeTolerance = DecodeTolerance(),
) throws -> Made {
    let specs = try VariantSpec.parseList(specs)
    return try withFile(source) { input in
        try withOutputs(specs.count) { files in
            let outputs = zip(specs, files).map { VariantOutput(spec: $0, output: $1) }
            let report = try Transformer(limits: limits, extensions: extensions)
                .transform(input, into: outputs, tolerance: tolerance)
            return Made(report: report, files: try files.map(readAll))
        }
    }
}

private func withOutputs<Result>(
    _ count: Int, _ made: [FileDescriptor] = [], _ body: ([FileDescriptor]) throws -> Result,
) throws -> Result {
    guard made.count < count else { return try body(made) }
    return try withFile([]) { try withOutputs(count, made + [$0], body) }
}

/// One variant, encoded.
func make(one source: [UInt8], _ spec: String) throws -> [UInt8] {
    try #require(make(source, "v=\(spec)").files.first)
}

/// A JPEG in pieces of two units (MCUs) each, by the program `vips`: ours writes none.
func jpegWithRestartMarkers(_ png: [UInt8], _ options: [String] = []) throws -> [UInt8] {
    try withTemporaryDirectory { folder in
        let (plain, marked) = (folder.appending("a.png"), folder.appending("b.jpg"))
        try Film.write(png, to: plain)
        let arguments = ["jpegsave", plain.string, marked.string, "--restart-interval", "2"] + options
        try #require(ChildProcess.run("vips", arguments) == 0)
        let bytes = try Corpus.bytes(marked)
        // A marker of the kind that begins a piece, within the pixels.
        try #require(bytes.firstRange(of: [0xFF, 0xD1]) != nil)
        return bytes
    }
}

func facts(_ source: [UInt8], limits: ImageLimits = ImageLimits()) throws -> ImageFacts {
    try withFile(source) { try Transformer(limits: limits).facts(of: $0) }
}

/// The class of the error, or nil for success. An error of another type is a failure of the test.
func failure(_ body: () throws -> Void) -> FailureClass? {
    do {
        try body()
    } catch let error as Failure {
        #expect(!error.message.isEmpty && error.message.count <= 500)
        return error.failureClass
    } catch {
        Issue.record(error)
    }
    return nil
}

/// A decoded file, for looking at single pixels.
struct Raster {
    let width: Int
    let height: Int
    let channels: Int
    let bytes: [UInt8]

    init(_ file: [UInt8]) throws {
        try ImagingRuntime.start()
        (width, height, channels, bytes) = try file.withUnsafeBytes { file in
            let format = try #require(ImageFormat.sniff(file))
            let picture = try Picture(of: file, as: format).upright().inWebColours()
            let size = picture.storedSize
            return (size.width, size.height, picture.bands, try picture.withPixels { Array($0) })
        }
    }

    subscript(x: Int, y: Int) -> [Int] {
        let start = (y * width + x) * channels
        return bytes[start..<(start + channels)].map(Int.init)
    }

    var size: String { "\(width)x\(height)" }

    /// The mean difference of all channels, in steps of 255.
    func difference(to other: Raster) -> Double {
        guard bytes.count == other.bytes.count, !bytes.isEmpty else { return 255 }
        return Double(zip(bytes, other.bytes).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }) / Double(bytes.count)
    }
}

func isNear(_ pixel: [Int], _ expected: [Int], within tolerance: Int = 8) -> Bool {
    pixel.count == expected.count && zip(pixel, expected).allSatisfy { abs($0 - $1) <= tolerance }
}

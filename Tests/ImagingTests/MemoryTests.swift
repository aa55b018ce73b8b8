import Core
import SystemPackage
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

@Suite(.timeLimit(.minutes(15)))
struct MemoryTests {
    /// In a process of its own, without the memory of other tests.
    @Test func memoryDoesNotGrowWithTheNumberOfTransforms() async {
        await #expect(processExitsWith: .success) {
            let jpeg = try make(one: TestImages.png(400, 300), "400x,jpeg")
            try transformMany(jpeg)
            let before = try residentBytes()
            try transformMany(jpeg)
            let grown = try residentBytes() - before
            #expect(grown < 8 << 20, "\(grown) bytes")
            #expect(ImagingRuntime.pixelBytes == 0)
        }
    }
}

/// 150 that succeed and 150 that fail half-way.
private func transformMany(_ jpeg: [UInt8]) throws {
    let cut = Array(jpeg.prefix(jpeg.count / 2))
    for _ in 0..<150 {
        _ = try make(jpeg, "a=100x,webp b=50x50,cover,png")
        #expect(failure { _ = try make(cut, "a=100x") } == .truncated)
    }
}

private func residentBytes() throws -> Int {
    let file = try FileDescriptor.open("/proc/self/statm", .readOnly)
    let text = try file.closeAfter {
        try String(unsafeUninitializedCapacity: 200) { try file.read(into: UnsafeMutableRawBufferPointer($0)) }
    }
    return try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) }) * 4096
}

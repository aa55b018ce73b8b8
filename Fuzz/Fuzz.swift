import Foundation

/// `Fuzz TARGET [libFuzzer's options] [folders]`, `Fuzz --list`, and `Fuzz --seeds FOLDER`.
@main
struct Fuzz {
    fileprivate static let target = FuzzTarget.all.first { $0.name == CommandLine.arguments.dropFirst().first }

    static func main() throws {
        let words = Array(CommandLine.arguments.dropFirst())
        if words == ["--list"] { return print(FuzzTarget.all.map(\.name).joined(separator: "\n")) }
        if words.first == "--seeds", words.count == 2 { return try writeSeeds(to: URL(fileURLWithPath: words[1])) }
        guard target != nil else {
            FileHandle.standardError.write(Data("Fuzz: name a target; --list shows them\n".utf8))
            exit(64)
        }
        // libFuzzer takes the words that follow the program's name, and the target isn't one of them.
        var count = CommandLine.argc - 1
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv + 1
        exit(runDriver(&count, &arguments, testOneInput))
    }

    private static func writeSeeds(to folder: URL) throws {
        for target in FuzzTarget.all {
            let place = folder.appendingPathComponent(target.name)
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            for (index, seed) in target.seeds.enumerated() {
                try Data(seed).write(to: place.appendingPathComponent("seed-\(index)"))
            }
        }
    }
}

/// Code that reads foreign bytes, and must take any: it may refuse them, and never traps.
struct FuzzTarget: Sendable {
    let name: String
    /// Small inputs to begin with.
    let seeds: [[UInt8]]
    let run: @Sendable (UnsafeRawBufferPointer) -> Void

    static let all = headerTargets + pictureTargets + textTargets + listTargets + storageTargets
}

/// The name is libFuzzer's own.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    Fuzz.target?.run(UnsafeRawBufferPointer(start: bytes, count: count))
    return 0
}

/// https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt,
) -> CInt

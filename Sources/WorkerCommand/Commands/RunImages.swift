import ArgumentParser
import Imaging
import PrefetchWorker

/// How large pictures may be, and how their decoders are confined.
struct RunImages: ParsableArguments {
    @Option(help: ArgumentHelp("Pixels of one frame (100000000).", valueName: "n"))
    var maxPixels: Int?

    @Option(help: ArgumentHelp("Frames of an animation that stays one (1000).", valueName: "n"))
    var maxFrames: Int?

    @Option(help: ArgumentHelp("Pixels of all frames of an animation together (250000000).", valueName: "n"))
    var maxAnimationPixels: Int?

    @Option(
        help: ArgumentHelp(
            "What a decoder may hold that can't deliver its rows one by one, as of a progressive JPEG or a HEIC (720MiB).",
            valueName: "bytes"))
    var maxDecoderMemory: String?

    @Flag(help: "Refuse to run where image decoders can't be confined by Landlock and seccomp.")
    var requireSandbox = false

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        var images = configuration.images
        images.pixels = try settings.number(
            "max-pixels", flag: maxPixels, default: images.pixels, in: 1...1_000_000_000)
        images.frames = try settings.number("max-frames", flag: maxFrames, default: images.frames, in: 1...1_000_000)
        images.animationPixels = try settings.number(
            "max-animation-pixels", flag: maxAnimationPixels, default: images.animationPixels, in: 1...100_000_000_000)
        let memory = try settings.bytes(
            "max-decoder-memory", flag: maxDecoderMemory, default: Int64(images.decoderBytes))
        images.decoderBytes = Int(memory)
        configuration.images = images
        configuration.helpers.requiresSandbox = try settings.isOn("require-sandbox", flag: requireSandbox)
    }
}

import ArgumentParser
import ImageFiles
import PrefetchWorker

enum PictureSettings {
    static let maxPixels = Setting.whole(
        "max-pixels", ImageLimits().pixels, in: 1...1_000_000_000, "Maximum pixels of one frame.")
    static let maxFrames = Setting.whole(
        "max-frames", ImageLimits().frames, in: 1...1_000_000, "Maximum frames of an animation.")
    static let maxAnimationPixels = Setting.whole(
        "max-animation-pixels", ImageLimits().animationPixels, in: 1...100_000_000_000,
        "Maximum pixels of all frames of an animation together.")
    static let maxDecoderMemory = Setting.bytes(
        "max-decoder-memory", "\(ImageLimits().decoderBytes >> 20)MiB",
        "Memory limit for decoders that can't stream (progressive JPEG, HEIC).")
    static let requireSandbox = Setting.flag(
        "require-sandbox", "Refuse to run where image decoders can't be confined by Landlock and seccomp.")
    static let all: [any NamedSetting] = [maxPixels, maxFrames, maxAnimationPixels, maxDecoderMemory, requireSandbox]
}

/// The largest pictures that are accepted, and the confinement of their decoders.
struct PictureOptions: ParsableArguments {
    @Option(PictureSettings.maxPixels) var maxPixels: Int?
    @Option(PictureSettings.maxFrames) var maxFrames: Int?
    @Option(PictureSettings.maxAnimationPixels) var maxAnimationPixels: Int?
    @Option(PictureSettings.maxDecoderMemory) var maxDecoderMemory: Int64?
    @Flag(PictureSettings.requireSandbox) var requireSandbox = false

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws(SettingsError) {
        configuration.images.pixels = try settings.value(PictureSettings.maxPixels, maxPixels)
        configuration.images.frames = try settings.value(PictureSettings.maxFrames, maxFrames)
        configuration.images.animationPixels = try settings.value(
            PictureSettings.maxAnimationPixels, maxAnimationPixels)
        configuration.images.decoderBytes = Int(try settings.value(PictureSettings.maxDecoderMemory, maxDecoderMemory))
        configuration.helpers.requiresSandbox = try settings.isOn(PictureSettings.requireSandbox, requireSandbox)
    }
}

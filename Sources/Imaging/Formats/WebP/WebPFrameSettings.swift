internal import CWebP
internal import Core

/// How the frames of an animated WebP are encoded. The defaults are gif2webp's.
struct WebPFrameSettings {
    enum Compression {
        /// 1 to 100.
        case lossy(quality: Int)
        /// - nearLossless: 0 to 99, how little pixels are nudged; nil not at all.
        case lossless(nearLossless: Int? = nil)

        fileprivate var pixelsInMemory: Int {
            switch self {
            case .lossy: 20 << 20
            case .lossless: 8 << 20
            }
        }
    }

    let compression: Compression
    /// libwebp's method, 0 (fast) to 6.
    let effort: Int
    /// How many pixels that change, in all, are encoded in one run, give or take a cycle of key frames. Noise takes four
    /// bytes for each of them without loss, and one and a half with the best lossy quality: 32 MiB, and usual pictures a
    /// tenth of that.
    let pixelsInMemory: Int

    init(compression: Compression, effort: Int = 4, pixelsInMemory: Int? = nil) {
        self.compression = compression
        self.effort = effort
        self.pixelsInMemory = pixelsInMemory ?? compression.pixelsInMemory
    }

    /// How many frames may lie between two key frames, at least and at most: where a whole frame is the smaller one they
    /// save bytes.
    var keyFrames: ClosedRange<Int> {
        switch compression {
        case .lossy: 3...5
        case .lossless: 9...17
        }
    }

    func config() throws(Failure) -> WebPConfig {
        var config = WebPConfig()
        let isKnown: Bool
        switch compression {
        case .lossy(let quality):
            isKnown = WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, Float(quality)) != 0
        case .lossless(let nearLossless):
            isKnown = WebPConfigInit(&config) != 0
            config.lossless = 1
            config.near_lossless = CInt(nearLossless ?? 100)
        }
        config.method = CInt(effort)
        guard isKnown, WebPValidateConfig(&config) != 0 else { throw Self.otherVersion }
        return config
    }

    /// The same for a frame by itself.
    var still: WebPEncoder.Settings {
        switch compression {
        case .lossy(let quality): WebPEncoder.Settings(quality: quality, effort: effort, isLossless: false)
        // libwebp's own quality of what loses nothing, as above.
        case .lossless(let near):
            WebPEncoder.Settings(quality: 75, effort: effort, isLossless: true, nearLossless: near)
        }
    }

    static var otherVersion: Failure {
        Failure(.encode, "libwebp is of another version than it was built for.")
    }
}

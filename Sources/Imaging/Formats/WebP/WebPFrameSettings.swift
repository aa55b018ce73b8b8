internal import CWebP
internal import Core
import ImageFiles

/// The encoder settings for the frames of an animated WebP. The defaults are gif2webp's.
struct WebPFrameSettings {
    enum Compression {
        /// 1 to 100.
        case lossy(quality: Int)
        /// - nearLossless: 0 to 99; the smaller the number, the more the pixels are changed. Nil changes none.
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
    /// Maximum changed pixels in a run. A run that has reached it continues to the next possible key frame. Noise takes
    /// four bytes for each pixel lossless, and one and a half at the best lossy quality, so a run takes some 32 MiB
    /// with either default. Usual pictures take a tenth of that.
    let pixelsInMemory: Int

    init(compression: Compression, effort: Int = 4, pixelsInMemory: Int? = nil) {
        self.compression = compression
        self.effort = effort
        self.pixelsInMemory = pixelsInMemory ?? compression.pixelsInMemory
    }

    /// Minimum and maximum frames between two key frames. A key frame saves bytes if the whole frame is smaller than
    /// its changes.
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

    /// The same settings for a single frame.
    var still: WebPEncoder.Settings {
        switch compression {
        case .lossy(let quality): WebPEncoder.Settings(quality: quality, effort: effort, isLossless: false)
        // libwebp's own quality for lossless encoding, as above.
        case .lossless(let near):
            WebPEncoder.Settings(quality: 75, effort: effort, isLossless: true, nearLossless: near)
        }
    }

    static var otherVersion: Failure {
        Failure(.encode, "libwebp is of another version than this program was built for.")
    }
}

import CAVIF
import CGIF
import CJXL
internal import CVips
import CWebP
public import Core
import ImageFiles

/// The image libraries of this process: started once, with all but the needed decoders blocked, and their versions.
public enum ImagingRuntime {
    /// Starts libvips if it is not running. May be called from any thread, any number of times.
    ///
    /// One thread for each pipeline, no cache of operations, no warnings on standard error, and every loader blocked
    /// except those of ``ImageFormat``.
    ///
    /// - Throws: class `transform` if libvips cannot start, or if a loader cannot be allowed or blocked.
    public static func start() throws(Failure) {
        try outcome.get()
        // Clears messages of earlier calls that were handled, such as a loader's first try, since they do not explain a
        // later failure.
        VipsFailure.forget()
    }

    /// Evaluated once, by the first thread that reads it; others wait for it.
    private static let outcome = Result { () throws(Failure) in
        pw_vips_silence_log(DecodeWatch.counter)
        guard pw_vips_init("worker") == 0 else {
            throw VipsFailure.take().error(.transform, "libvips could not be started")
        }
        vips_concurrency_set(1)
        vips_cache_set_max(0)
        try allowOnlyOurLoaders()
    }

    /// libvips' own list of untrusted loaders leaves some allowed, so all loaders are blocked from the root on.
    private static func allowOnlyOurLoaders() throws(Failure) {
        vips_operation_block_set("VipsForeignLoad", 1)
        let ours = ImageFormat.allCases.compactMap(\.definition.loaderClass)
        for loader in ours { vips_operation_block_set(loader, 0) }
        for loader in ours where pw_vips_is_blocked(loader) != 0 {
            throw Failure(.transform, "libvips has no usable loader \(loader).")
        }
        for other in mustBeBlocked where pw_vips_is_blocked(other) == 0 {
            throw Failure(.transform, "libvips' loader \(other) could not be blocked.")
        }
    }

    /// Loaders that read other files or run interpreters; missing ones count as blocked.
    private static let mustBeBlocked = [
        "VipsForeignLoadSvgSource", "VipsForeignLoadPdfSource", "VipsForeignLoadMagickFile",
        "VipsForeignLoadMagickBuffer", "VipsForeignLoadOpenslideSource", "VipsForeignLoadHeifFile",
        "VipsForeignLoadJpegFile",
    ]

    /// The versions that determine a variant's bytes besides its spec; part of the identity under which it is cached.
    public static var coderVersion: String {
        let parts = versions.filter { $0.name != "glib" }.map { "\($0.name) \($0.version)" }
        return (parts + ["pipeline \(pipeline)"]).joined(separator: " ")
    }

    /// Raised with every change that makes other pixels or bytes from the same source and spec.
    private static let pipeline = 13

    /// The libraries, by name.
    public static var versions: [(name: String, version: String)] {
        let vips = (0..<3).map { "\(vips_version(CInt($0)))" }.joined(separator: ".")
        let webp = WebPGetEncoderVersion()
        let jxl = JxlEncoderVersion()
        return [
            ("vips", vips),
            ("webp", "\(webp >> 16).\(webp >> 8 & 0xFF).\(webp & 0xFF)"),
            ("gif", "\(GIFLIB_MAJOR).\(GIFLIB_MINOR).\(GIFLIB_RELEASE)"),
            ("avif", String(cString: avifVersion())),
            ("aom", aomVersion),
            ("jxl", "\(jxl / 1_000_000).\(jxl / 1_000 % 1_000).\(jxl % 1_000)"),
            ("glib", "\(glib_major_version).\(glib_minor_version).\(glib_micro_version)"),
        ]
    }

    /// The version of libavif's encoder, from its list of codecs: `dav1d [dec]:1.0.0, aom [enc/dec]:v3.6.0`.
    private static var aomVersion: String {
        let codecs = withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { text in
            guard let start = text.baseAddress else { return "" }
            avifCodecVersions(start)
            return String(cString: start)
        }
        let own = codecs.split(separator: ",").first { $0.contains("aom ") }
        return own?.split(separator: ":").last?.drop { $0 == "v" }.description ?? "missing"
    }

    /// Bytes of pixels that libvips holds now; 0 between transforms.
    static var pixelBytes: Int { vips_tracked_get_mem() }
}

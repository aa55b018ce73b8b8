import CWebP

extension AnimationFacts {
    /// Asks libwebp's demuxer, which allocates a small record for each frame; nil where the file is no animation, or
    /// none that the demuxer reads to its end.
    init?(webp bytes: UnsafeRawBufferPointer) {
        guard let demuxer = WebPDemuxer(bytes) else { return nil }
        let size = PixelSize(
            width: demuxer.feature(WEBP_FF_CANVAS_WIDTH), height: demuxer.feature(WEBP_FF_CANVAS_HEIGHT))
        guard demuxer.feature(WEBP_FF_FORMAT_FLAGS) & Int(ANIMATION_FLAG.rawValue) != 0 else { return nil }
        self.init(
            canvas: size,
            frames: demuxer.feature(WEBP_FF_FRAME_COUNT),
            loopCount: demuxer.feature(WEBP_FF_LOOP_COUNT),
            endsEarly: !demuxer.isComplete,
        )
    }
}

/// libwebp's demuxer over bytes in memory; the one owner of its handle.
struct WebPDemuxer: ~Copyable {
    private let handle: OpaquePointer
    /// Every chunk that the header promises is there.
    let isComplete: Bool

    /// Nil where not even the header can be read.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var data = WebPData(bytes: bytes.bindMemory(to: UInt8.self).baseAddress, size: bytes.count)
        var state = WEBP_DEMUX_PARSE_ERROR
        guard let handle = WebPDemuxPartial(&data, &state) else { return nil }
        guard state.rawValue > WEBP_DEMUX_PARSING_HEADER.rawValue else {
            WebPDemuxDelete(handle)
            return nil
        }
        self.handle = handle
        isComplete = state == WEBP_DEMUX_DONE
    }

    deinit { WebPDemuxDelete(handle) }

    func feature(_ feature: WebPFormatFeature) -> Int { Int(WebPDemuxGetI(handle, feature)) }
}

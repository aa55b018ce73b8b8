extension Picture {
    /// A GIF of one frame, as an animation's are made: with no more than so many colours, exactly where it has no more.
    ///
    /// - Parameter colours: 2 to 256.
    func gif(colours: Int) throws(VipsFailure) -> EncodedFile {
        var bytes: [UInt8] = []
        do throws(ImagingError) {
            let pixels = try pixelBuffer()
            let writer = try GIFWriter { bytes += $0 }
            let sink = try GIFFrameSink(
                writer, size: pixels.size, loopCount: 1, colours: colours, metadata: AnimationMetadata(ofPlain: self))
            try sink.add(pixels, duration: 0)
            try sink.finish()
        } catch {
            throw VipsFailure(text: error.message)
        }
        return EncodedFile(bytes)
    }
}

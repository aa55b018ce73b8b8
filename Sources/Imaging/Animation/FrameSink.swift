/// An animation that is written frame by frame, once.
///
/// What it needs of memory beyond its encoded bytes does not depend on the number of frames.
protocol FrameSink: AnyObject {
    /// - Parameters:
    ///   - pixels: of the sink's size. May change afterwards.
    ///   - duration: in milliseconds.
    /// - Throws: class `encode`.
    func add(_ pixels: PixelBuffer, duration: Int) throws(ImagingError)

    /// Writes what is left. Nothing may be added afterwards.
    ///
    /// - Throws: class `encode`, also where no frame was added.
    func finish() throws(ImagingError)
}

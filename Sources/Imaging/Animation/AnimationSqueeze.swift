internal import Core
internal import SystemPackage

/// Brings an animation under its `max-bytes`. It encodes the animation again from the first frame on, at a lower
/// strength each time, since memory cannot hold all frames at once.
///
/// It searches by bisection, as for stills. Each try costs as much as the first, so it stops after a fixed number of
/// tries, with the best file so far. That number is the same on any machine, so the result depends only on the source
/// and the variant.
struct AnimationSqueeze {
    /// Maximum encoded pixels of all tries together: some 15 s of the 30 s of CPU that an image has.
    static let allowance = 120_000_000

    let most: Int
    /// The pixels of a try: those of the variant's frames, and a part of the source's, which are decoded for them.
    let cost: Int
    /// Encodes the whole animation into the variant's file.
    let encode: (AnimationEncoding) throws(Failure) -> Rendition

    /// - Parameters:
    ///   - output: the variant's file, larger than `most` bytes.
    ///   - encoding: the one with which it was written.
    /// - Throws: class `encode` if it cannot be that small.
    func fit(_ output: FileDescriptor, _ encoding: AnimationEncoding) throws(Failure) -> Rendition {
        guard let weakest = encoding.weakest else {
            throw failure("and a lossless \(encoding.formatName) has no quality to lower")
        }
        var left = Self.allowance / max(1, cost) - 1
        var best: (encoding: AnimationEncoding, rendition: Rendition)?
        var written: Int?
        var (low, tooHigh) = (weakest - 1, encoding.strength)
        // One more try may be needed to write the best file again.
        while tooHigh - low > 1, left > 1 {
            left -= 1
            var next = encoding
            next.strength = (low + tooHigh) / 2
            let rendition = try again(output, next)
            written = next.strength
            if try Self.size(of: output) <= most {
                (best, low) = ((next, rendition), next.strength)
            } else {
                tooHigh = next.strength
            }
        }
        guard let best else {
            throw failure(
                tooHigh - low > 1
                    ? "and has too many pixels to try lower qualities; ask for a smaller picture"
                    : "even at the lowest quality")
        }
        return written == best.encoding.strength ? best.rendition : try again(output, best.encoding)
    }

    private func again(
        _ output: FileDescriptor, _ encoding: AnimationEncoding,
    ) throws(Failure) -> Rendition {
        do {
            try output.resize(to: 0)
            try output.seek(offset: 0, from: .start)
        } catch {
            throw Failure(.encode, "The file can't be written anew: \(error).")
        }
        return try encode(encoding)
    }

    private func failure(_ why: String) -> Failure {
        Failure(.encode, "it is larger than \(most) bytes, \(why).")
    }

    /// The size of a written file in bytes.
    static func size(of output: FileDescriptor) throws(Failure) -> Int {
        do {
            return Int(try output.seek(offset: 0, from: .end))
        } catch {
            throw Failure(.encode, "The file can't be measured: \(error).")
        }
    }
}

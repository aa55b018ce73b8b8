internal import Core
import ImageFiles

/// Brings an animation under its `max-bytes`. It encodes the animation again from the first frame on, at a lower
/// strength each time, since memory cannot hold all frames at once.
///
/// It searches by bisection, as for stills. Each try costs as much as the first, so it stops after a fixed number of
/// tries, with the best file so far. That number is the same on any machine, so the result depends only on the source
/// and the variant.
struct AnimationSqueeze {
    /// Maximum encoded pixels of all tries together: some 15 s of the 30 s of CPU that an image has.
    static let allowance = AnimationEfforts.allowance

    let most: Int
    let attempts: AnimationAttempts

    /// - Parameter file: larger than `most` bytes.
    /// - Throws: class `encode` if it cannot be that small.
    func fit(_ file: AnimationAttempts.File) throws(Failure) -> Rendition {
        let encoding = file.encoding
        guard let weakest = encoding.weakest else {
            throw failure("and a lossless \(encoding.formatName) has no quality to lower")
        }
        var left = Self.allowance / max(1, attempts.cost(file)) - 1
        var best: AnimationAttempts.File?
        var written: Int?
        var (low, tooHigh) = (weakest - 1, encoding.strength)
        // One more try may be needed to write the best file again.
        while tooHigh - low > 1, left > 1 {
            left -= 1
            var next = encoding
            next.strength = (low + tooHigh) / 2
            let made = try attempts.again(next)
            written = next.strength
            if made.size <= most {
                (best, low) = (made, next.strength)
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
        return written == best.encoding.strength ? best.rendition : try attempts.again(best.encoding).rendition
    }

    private func failure(_ why: String) -> Failure {
        Failure(.encode, "it is larger than \(most) bytes, \(why).")
    }
}

internal import Core
import ImageFiles
internal import SystemPackage

/// Writes an animated variant again and again, with one encoding after the other, and keeps the best file: the smallest
/// of several formats, or one within `max-bytes`.
///
/// Each attempt decodes the animation again, since memory cannot hold all frames. How many there are is limited by
/// numbers of pixels and not by time, so the same variant gives the same file on any machine.
struct AnimationAttempts {
    struct File {
        let encoding: AnimationEncoding
        let rendition: Rendition
        /// In bytes.
        let size: Int

        init(_ encoding: AnimationEncoding, _ rendition: Rendition, _ size: Int) {
            (self.encoding, self.rendition, self.size) = (encoding, rendition, size)
        }
    }

    /// The pixels that all formats together may take: some 8 s of the 30 s of CPU that an image has. A format that would
    /// take more is left out.
    static let allowance = 60_000_000

    /// The variant's file.
    let output: FileDescriptor
    /// The source, which each attempt decodes.
    let decoding: ImageFacts
    /// Encodes the whole animation into the variant's file.
    let encode: (AnimationEncoding) throws(Failure) -> Rendition

    /// - Parameters:
    ///   - first: the file that was written last.
    ///   - candidates: the first is that file's.
    /// - Throws: class `encode` if no format can have at most `most` bytes.
    func best(_ first: File, of candidates: [AnimationEncoding], _ most: Int?) throws(Failure) -> Rendition {
        var (files, present) = try files(first, candidates)
        files.sort { $0.size < $1.size }
        var failure: Failure?
        for file in files {
            if file.size <= most ?? .max {
                return file.encoding.formatName == present ? file.rendition : try again(file.encoding).rendition
            }
            guard let most else { break }
            present = nil
            do throws(Failure) {
                return try AnimationSqueeze(most: most, attempts: self).fit(file)
            } catch {
                failure = error
            }
        }
        throw failure ?? Failure(.encode, "The animation has no format to be written in.")
    }

    /// The result of each candidate that can be encoded in time, and the format that the variant's file has after the
    /// last attempt; nil if that attempt failed.
    private func files(
        _ first: File, _ candidates: [AnimationEncoding],
    ) throws(Failure) -> (files: [File], present: String?) {
        var files = [first]
        var present: String? = first.encoding.formatName
        var left = Self.allowance - cost(first)
        for encoding in candidates.dropFirst() {
            let cost = cost(File(encoding, first.rendition, 0))
            guard cost <= left else { continue }
            left -= cost
            do throws(Failure) {
                present = nil
                files.append(try again(encoding))
                present = encoding.formatName
            } catch {
                // The format does not suit this animation; one of the others does.
                guard error.failureClass == .encode else { throw error }
            }
        }
        return (files, present)
    }

    /// The pixels of an attempt: those of the variant's frames, and a part of the source's, which are decoded for them.
    func cost(_ file: File) -> Int {
        let frames = decoding.frames
        let size = PixelSize(width: file.rendition.width, height: file.rendition.height)
        let own = file.encoding.cost(AnimationOutline(size: size, frames: frames, loopCount: 0))
        // The source's pixels are within the limits for animations.
        let (sum, overflow) = own.addingReportingOverflow(frames * decoding.width * decoding.height / 4)
        return overflow ? .max : sum
    }

    func again(_ encoding: AnimationEncoding) throws(Failure) -> File {
        do {
            try output.resize(to: 0)
            try output.seek(offset: 0, from: .start)
        } catch {
            throw Failure(.encode, "The file can't be written anew: \(error).")
        }
        let rendition = try encode(encoding)
        return File(encoding, rendition, try size())
    }

    /// The size of the written file in bytes.
    func size() throws(Failure) -> Int {
        do {
            return Int(try output.seek(offset: 0, from: .end))
        } catch {
            throw Failure(.encode, "The file can't be measured: \(error).")
        }
    }
}

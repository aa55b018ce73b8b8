public import Core

/// What the body of a request has to be like, beside what the downloader's own limits say. A transfer ends as soon as it
/// is known to be otherwise: at its `Content-Length`, at the picture's header, or at the first byte too many.
public struct BodyFilter: Sendable {
    /// Sizes that are refused with a class of their own.
    public struct Size: Sendable, Hashable {
        public let range: ClosedRange<Int64>
        public let failure: FailureClass
        /// What is wanted, in half a sentence.
        public let wanted: String

        public init(_ range: ClosedRange<Int64>, _ failure: FailureClass, wanted: String) {
            self.range = range
            self.failure = failure
            self.wanted = wanted
        }
    }

    /// What it is called where requests are told apart.
    public let name: String
    public let sizes: [Size]
    /// Why a picture whose header says so many pixels isn't wanted; nil where it is.
    public let objection: (@Sendable (_ width: Int, _ height: Int) -> String?)?

    public init(_ name: String, sizes: [Size], objection: (@Sendable (Int, Int) -> String?)?) {
        self.name = name
        self.sizes = sizes
        self.objection = objection
    }

    /// - Parameter bytes: as they were announced.
    func check(announced bytes: Int64) throws(Failure) {
        for size in sizes where !size.range.contains(bytes) {
            throw Failure(size.failure, "The body is announced with \(bytes) bytes, and \(size.wanted).")
        }
    }

    /// - Parameter bytes: so many have come at least.
    func check(received bytes: Int64) throws(Failure) {
        for size in sizes where bytes > size.range.upperBound {
            throw Failure(size.failure, "The body has at least \(bytes) bytes, and \(size.wanted).")
        }
    }

    func check(width: Int, height: Int) throws(Failure) {
        if let objection = objection?(width, height) { throw Failure(.filtered, objection) }
    }
}

public import Core

/// A request's requirements on its body, besides the downloader's own limits. The transfer ends as soon as the body
/// fails them: at its `Content-Length`, at the picture's header, or at the first byte too many.
public struct BodyFilter: Sendable {
    /// The accepted sizes; other bodies fail with a class of their own.
    public struct Size: Sendable, Hashable {
        public let range: ClosedRange<Int64>
        public let failure: FailureClass
        /// The requirement, in half a sentence.
        public let wanted: String

        public init(_ range: ClosedRange<Int64>, _ failure: FailureClass, wanted: String) {
            self.range = range
            self.failure = failure
            self.wanted = wanted
        }
    }

    /// Identifies the filter when requests are compared.
    public let name: String
    public let sizes: [Size]
    /// The reason to refuse a picture of this size, from its header; nil to accept it.
    public let objection: (@Sendable (_ width: Int, _ height: Int) -> String?)?

    public init(_ name: String, sizes: [Size], objection: (@Sendable (Int, Int) -> String?)?) {
        self.name = name
        self.sizes = sizes
        self.objection = objection
    }

    /// - Parameter bytes: the announced length.
    func check(announced bytes: Int64) throws(Failure) {
        for size in sizes where !size.range.contains(bytes) {
            throw Failure(size.failure, "The body is announced with \(bytes) bytes, and \(size.wanted).")
        }
    }

    /// - Parameter bytes: the least length that the body can have, by the bytes received.
    func check(received bytes: Int64) throws(Failure) {
        for size in sizes where bytes > size.range.upperBound {
            throw Failure(size.failure, "The body has at least \(bytes) bytes, and \(size.wanted).")
        }
    }

    func check(width: Int, height: Int) throws(Failure) {
        if let objection = objection?(width, height) { throw Failure(.filtered, objection) }
    }
}

/// Room on the disk that a body takes up while it arrives and until its file is closed.
///
/// The downloader asks for it before it writes, and holds it as long as it holds the file; who takes the file over takes
/// this as well. What was set aside is given back when the last reference goes.
public protocol BodyRoom: AnyObject, Sendable {
    /// Sets room aside for so many bytes more. Called on the download thread, which it doesn't hold up.
    ///
    /// - Parameter onAnswer: where this returns false, called once, from any thread, when it is worth asking again.
    /// - Returns: whether there is room now. Where there isn't, the transfer pauses and the others go on.
    /// - Throws: an `Errno`: `noSpace` where there is none, `fileTooLarge` for a body that is larger than there can ever be.
    func grow(by bytes: Int, onAnswer: @escaping @Sendable () -> Void) throws -> Bool
}

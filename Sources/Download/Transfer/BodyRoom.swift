/// Room on the disk that a body takes up while it arrives and until its file is closed.
///
/// The downloader asks for it before it writes, and holds it as long as it holds the file; who takes the file over takes
/// this as well. What was set aside is given back when the last reference goes.
public protocol BodyRoom: AnyObject, Sendable {
    /// Called on the download thread, which it may hold up for a moment.
    ///
    /// - Throws: an `Errno`: `noSpace` where there is none, `fileTooLarge` for a body that is larger than there can ever be.
    func grow(by bytes: Int) throws
}

import Jobs

extension CacheFolder {
    /// A cache without any files.
    static let nowhere = CacheFolder(exists: { _, _ in false }, remove: { _ in nil })
}

internal import ContentCache
internal import Core
internal import Jobs

// The item does not cause errors of the database and the cache: it goes back to the queue, and the worker pauses.
extension Failure {
    init(_ error: CacheError) { self.init(error.code == .diskFull ? .diskFull : .diskError, error.message) }
    init(_ error: JobsError) { self.init(error.code == .diskFull ? .diskFull : .diskError, "\(error)") }
}

/// What guards a helper; its first word to the worker, once its libraries are loaded and the guards are up.
struct HelperProtections: Codable, Equatable, Sendable {
    /// Always true: what tells this word from any other.
    var ready = true
    /// The version of Landlock that took hold; 0 for none.
    var landlock = 0
    /// Whether system calls are filtered.
    var seccomp = false
    /// Why one of them is missing, in sentences.
    var complaints: [String] = []

    var isComplete: Bool { landlock > 0 && seccomp }
}

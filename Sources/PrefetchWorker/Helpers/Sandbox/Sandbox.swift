internal import SystemPackage

/// The guards of a helper, put up in two steps around the start of its libraries.
///
/// Landlock binds only the threads that are yet to come, and libraries start some: so files can be read only from the
/// first step on, and not at all from the second; the filter of system calls then binds every thread at once.
struct Sandbox {
    private(set) var protections = HelperProtections()

    /// Before the first other thread is started: nothing can be written, created or connected to any more.
    mutating func prepare() {
        restrict(to: .reading)
    }

    /// Once everything is loaded: open descriptors stay usable, and nothing else is.
    mutating func close() -> HelperProtections {
        lock()
        filter()
        return protections
    }

    /// The second step of Landlock, where the first took hold.
    mutating func lock() {
        if protections.landlock > 0 { restrict(to: .nothing) }
    }

    private mutating func restrict(to access: Landlock.Access) {
        do {
            protections.landlock = try Landlock.restrict(to: access)
        } catch {
            protections.landlock = 0
            protections.complaints.append("Landlock can't be had: \(error).")
        }
    }

    mutating func filter() {
        do {
            try SystemCallFilter.load()
            protections.seccomp = true
        } catch {
            protections.complaints.append("System calls can't be filtered: \(error).")
        }
    }
}

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

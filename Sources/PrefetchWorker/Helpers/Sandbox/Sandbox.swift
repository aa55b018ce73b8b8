internal import SystemPackage

/// The protections of a helper, applied in two steps before and after its libraries start.
///
/// Landlock applies only to threads that start later, and libraries start threads. So the first step still allows
/// reading files, and the second allows none; the system call filter then applies to all threads at once.
struct Sandbox {
    private(set) var protections = HelperProtections()

    /// Call it before the first other thread starts. From then on the process can write, create or connect to nothing.
    mutating func prepare() {
        restrict(to: .reading)
    }

    /// Call it after everything is loaded. From then on the process can use only open descriptors.
    mutating func close() -> HelperProtections {
        lock()
        filter()
        return protections
    }

    /// The second step of Landlock; needs the first to have succeeded.
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

/// The protections that a helper reports when it is ready: its libraries are loaded and its sandbox is closed.
struct HelperProtections: Codable, Equatable, Sendable {
    /// Always true; distinguishes this message from others.
    var ready = true
    /// The version of Landlock in force; 0 for none.
    var landlock = 0
    /// Whether system calls are filtered.
    var seccomp = false
    /// Why a protection is missing, in sentences.
    var complaints: [String] = []

    var isComplete: Bool { landlock > 0 && seccomp }
}

internal import Glibc
package import HelperProtocol
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
            protections.complaints.append("Landlock is not available: \(error).")
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

extension SandboxReport {
    /// Closes the sandbox of this process permanently. It tries each protection alone before it adds the next, since
    /// the second would hide a hole in the first.
    package static func make() -> SandboxReport {
        var sandbox = Sandbox()
        sandbox.prepare()
        sandbox.lock()
        var trials = attempts(.landlock, version: sandbox.protections.landlock)
        sandbox.filter()
        if sandbox.protections.seccomp { trials += attempts(.seccomp, version: sandbox.protections.landlock) }
        return SandboxReport(protections: sandbox.protections, trials: trials)
    }

    /// Expects of Landlock only what the kernel's version supports.
    private static func attempts(_ layer: Layer, version: Int) -> [Trial] {
        ForbiddenAction.all.filter { $0.layer == layer && (layer == .seccomp || $0.since <= version) }.map { action in
            let error = action.refusal()
            return Trial(action: action.name, layer: layer, refused: error != nil, error: error)
        }
    }
}

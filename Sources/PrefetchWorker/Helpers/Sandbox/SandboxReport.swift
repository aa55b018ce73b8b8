internal import Glibc

/// The result of a helper that tried every action that its sandbox must refuse.
struct SandboxReport: Codable, Sendable {
    struct Trial: Codable, Sendable {
        let action: String
        let layer: ForbiddenAction.Layer
        let refused: Bool
        /// The error number with which it was refused.
        let error: Int32?
    }

    let protections: HelperProtections
    let trials: [Trial]

    /// Actions that should have been refused and were not.
    var leaks: [Trial] { trials.filter { !$0.refused } }
}

extension SandboxReport {
    /// Closes the sandbox of this process permanently. It tries each protection alone before it adds the next, since
    /// the second would hide a hole in the first.
    static func make() -> SandboxReport {
        var sandbox = Sandbox()
        sandbox.prepare()
        sandbox.lock()
        var trials = attempts(.landlock, version: sandbox.protections.landlock)
        sandbox.filter()
        if sandbox.protections.seccomp { trials += attempts(.seccomp, version: sandbox.protections.landlock) }
        return SandboxReport(protections: sandbox.protections, trials: trials)
    }

    /// Expects of Landlock only what the kernel's version supports.
    private static func attempts(_ layer: ForbiddenAction.Layer, version: Int) -> [Trial] {
        ForbiddenAction.all.filter { $0.layer == layer && (layer == .seccomp || $0.since <= version) }.map { action in
            let error = action.refusal()
            return Trial(action: action.name, layer: layer, refused: error != nil, error: error)
        }
    }
}

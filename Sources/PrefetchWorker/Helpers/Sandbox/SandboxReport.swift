internal import Glibc

/// The findings of a helper that tried everything its sandbox has to refuse.
struct SandboxReport: Codable, Sendable {
    struct Trial: Codable, Sendable {
        let action: String
        let layer: ForbiddenAction.Layer
        let refused: Bool
        /// The error's number, where it was refused.
        let error: Int32?
    }

    let protections: HelperProtections
    let trials: [Trial]

    /// What should have been refused, and wasn't.
    var leaks: [Trial] { trials.filter { !$0.refused } }
}

extension SandboxReport {
    /// Closes the sandbox of this process for good, one guard after the other, and tries each on its own first: the
    /// second would hide a hole in the first.
    static func make() -> SandboxReport {
        var sandbox = Sandbox()
        sandbox.prepare()
        sandbox.lock()
        var trials = attempts(.landlock, version: sandbox.protections.landlock)
        sandbox.filter()
        if sandbox.protections.seccomp { trials += attempts(.seccomp, version: sandbox.protections.landlock) }
        return SandboxReport(protections: sandbox.protections, trials: trials)
    }

    /// A kernel's Landlock isn't asked for more than its version promises.
    private static func attempts(_ layer: ForbiddenAction.Layer, version: Int) -> [Trial] {
        ForbiddenAction.all.filter { $0.layer == layer && (layer == .seccomp || $0.since <= version) }.map { action in
            let error = action.refusal()
            return Trial(action: action.name, layer: layer, refused: error != nil, error: error)
        }
    }
}

/// The limits that a helper process sets itself.
package enum HelperBounds {
    /// Bytes of memory that a helper may allocate (`RLIMIT_DATA`).
    package static let memory: UInt64 = 1 << 30
    /// Maximum size of a file that a helper writes (`RLIMIT_FSIZE`); variants are far smaller.
    package static let file: UInt64 = 1 << 30
    /// Open files of a helper (`RLIMIT_NOFILE`): those of a full message, and some more.
    package static let descriptors: UInt64 = 256
}

/// The libraries of a helper program, and what it can read and write with them.
package struct HelperDescription: Codable, Sendable {
    /// The versions that determine a rendition's bytes besides its source and spec; part of the identity under which it
    /// is cached.
    package var coder: String
    /// `vips 8.14.1`, sorted as `worker doctor` shows them.
    package var libraries: [String]
    /// The coders in the order in which they are asked, each with its version.
    package var coders: [String]
    /// The names of the formats that work here, tested with an image of each; empty unless a test was requested.
    package var reads: [String]
    package var writes: [String]
    /// Why the libraries could not be started; nil if they could.
    package var problem: String?

    package init(
        coder: String, libraries: [String], coders: [String], reads: [String], writes: [String], problem: String?,
    ) {
        self.coder = coder
        self.libraries = libraries
        self.coders = coders
        self.reads = reads
        self.writes = writes
        self.problem = problem
    }
}

/// The protections that a helper reports when it is ready: its libraries are loaded and its sandbox is closed.
package struct HelperProtections: Codable, Equatable, Sendable {
    /// Always true; distinguishes this message from others.
    package var ready = true
    /// The version of Landlock in force; 0 for none.
    package var landlock = 0
    /// Whether system calls are filtered.
    package var seccomp = false
    /// Why a protection is missing, in sentences.
    package var complaints: [String] = []
    /// The versions that determine a rendition's bytes: see ``HelperDescription/coder``.
    package var coder: String?

    package init() {}

    package var isComplete: Bool { landlock > 0 && seccomp }
}

/// The result of a helper that tried every action that its sandbox must refuse.
package struct SandboxReport: Codable, Sendable {
    /// The protection that has to refuse an action.
    package enum Layer: String, Codable, Sendable { case landlock, seccomp }

    package struct Trial: Codable, Sendable {
        package let action: String
        package let layer: Layer
        package let refused: Bool
        /// The error number with which it was refused.
        package let error: Int32?

        package init(action: String, layer: Layer, refused: Bool, error: Int32?) {
            (self.action, self.layer, self.refused, self.error) = (action, layer, refused, error)
        }
    }

    package let protections: HelperProtections
    package let trials: [Trial]

    package init(protections: HelperProtections, trials: [Trial]) {
        (self.protections, self.trials) = (protections, trials)
    }

    /// Actions that should have been refused and were not.
    package var leaks: [Trial] { trials.filter { !$0.refused } }
}

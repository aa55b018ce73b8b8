/// An error that PostgreSQL reports, or a connection to it that can't be made or is lost.
struct PostgresError: Error, CustomStringConvertible {
    /// Five characters, see https://www.postgresql.org/docs/15/errcodes-appendix.html; "08006" for a lost connection.
    let state: String
    let message: String
    /// The sentence that names the constraint which a statement would break.
    let constraint: String?

    var description: String { message }

    /// Whether the connection can't be used any more.
    var isOfConnection: Bool {
        // 08P01, a violation of the protocol, is a mistake that comes again.
        (state.hasPrefix("08") && state != "08P01") || ["57P01", "57P02", "57P03", "25P03"].contains(state)
    }

    /// Whether the server is away, or does not take writes yet, and the same call may succeed once it is back.
    var isOutage: Bool { isOfConnection || state == "25006" }

    /// Whether the same transaction may succeed when it is repeated at once: it was the victim of a deadlock.
    var isToBeRepeated: Bool { state == "40001" || state == "40P01" }

    /// Whether a lock did not become free within `lock_timeout`.
    var isLockTimeout: Bool { state == "55P03" }

    /// The sentence with which a trigger or a constraint refuses a change; nil for another error.
    var refusal: String? {
        switch state {
        case "P0001": message
        case "23514": constraint ?? message
        // Integrity, data and syntax: what a trigger of the user's may fail with by its own fault.
        case "42501", "42P18": nil
        case _ where ["22", "23", "42"].contains(state.prefix(2)): message
        default: nil
        }
    }
}

extension JobsError {
    /// Translates an error of PostgreSQL.
    init(_ error: PostgresError, path: String) {
        if error.isOfConnection {
            self.init(.inputOutput, "The database \(path) can't be reached: \(error.message).")
            return
        }
        switch error.state {
        case "P0001", "23514", "23502", "23505", "22001", "22P02", "22003":
            self.init(.refused, error.refusal ?? error.message)
        case "53100": self.init(.diskFull, "The disk of the database \(path) is full: \(error.message).")
        case "53200", "53300", "55P03", "57014", "40001", "40P01":
            self.init(.busy, "The database \(path) is busy: \(error.message).")
        case "58030": self.init(.inputOutput, "The disk of the database \(path) failed: \(error.message).")
        case "XX001", "XX002":
            self.init(.corrupt, "The database \(path) is damaged: \(error.message).")
        case "42501":
            self.init(
                .cannotOpen,
                "The role may not use the database \(path): \(error.message). docs/guides/many-machines.md "
                    + "lists the grants.")
        case "25006":
            self.init(.inputOutput, "The database \(path) is a standby and takes no writes: \(error.message).")
        case _ where ["28", "3D"].contains(error.state.prefix(2)):
            self.init(.cannotOpen, "The database \(path) can't be opened: \(error.message).")
        default:
            self.init(.internalError, "PostgreSQL reported error \(error.state) for \(path): \(error.message).")
        }
    }
}

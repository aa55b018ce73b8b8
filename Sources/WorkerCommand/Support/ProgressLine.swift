import Synchronization

/// The progress bar at the bottom of a terminal, with log lines above it.
final class ProgressLine: Sendable {
    private let current = Mutex<String?>(nil)

    func draw(_ text: String) {
        current.withLock {
            $0 = text
            Terminal.errorRaw("\r\u{1B}[2K\(text)")
        }
    }

    func log(_ text: String) {
        current.withLock { current in
            guard let shown = current else { return Terminal.error(text) }
            Terminal.errorRaw("\r\u{1B}[2K\(text)\n\(shown)")
        }
    }

    /// Ends the bar and leaves its last state on the screen.
    func finish() {
        current.withLock { current in
            if current != nil { Terminal.errorRaw("\n") }
            current = nil
        }
    }
}

import Glibc
import Synchronization

/// The lines at the bottom of a terminal that are drawn anew in place, with log lines above them.
final class LiveDisplay: Sendable {
    private let current = Mutex<[String]>([])
    private let isOutput: Bool

    /// - Parameter isOutput: whether the terminal is that of standard output, and not that of standard error.
    init(isOutput: Bool = false) { self.isOutput = isOutput }

    /// The columns of its terminal.
    var width: Int { isOutput ? Terminal.outputWidth : Terminal.width }

    private func write(_ text: String) {
        if isOutput { Terminal.outputRaw(text) } else { Terminal.errorRaw(text) }
    }

    func draw(_ line: String) { draw([line]) }

    /// - Parameter lines: none longer than the terminal is wide, but for its colours.
    func draw(_ lines: [String]) {
        current.withLock { current in
            write(Self.back(over: current) + lines.joined(separator: "\n"))
            current = lines
        }
    }

    func log(_ text: String) {
        current.withLock { current in
            guard !current.isEmpty else { return write(text + "\n") }
            write(Self.back(over: current) + text + "\n" + current.joined(separator: "\n"))
        }
    }

    /// Ends the display and leaves its last state on the screen.
    func finish() {
        current.withLock { current in
            if !current.isEmpty { write("\n") }
            current = []
        }
    }

    /// To the beginning of the first of these lines, with all of them erased.
    private static func back(over lines: [String]) -> String {
        (lines.count > 1 ? "\u{1B}[\(lines.count - 1)A" : "") + "\r\u{1B}[J"
    }
}

/// The colours of a terminal; none where there is no terminal, or where NO_COLOR asks for none (no-color.org).
struct Colours {
    private let isOn: Bool

    static let ofError = Colours(isTerminal: Terminal.errorIsTerminal)
    static let ofOutput = Colours(isTerminal: Terminal.outputIsTerminal)

    init(isTerminal: Bool) {
        isOn = isTerminal && Self.variable("NO_COLOR").isEmpty && Self.variable("TERM") != "dumb"
    }

    func green(_ text: String) -> String { colour(text, 32) }
    func red(_ text: String) -> String { colour(text, 31) }
    func yellow(_ text: String) -> String { colour(text, 33) }
    func dim(_ text: String) -> String { colour(text, 2) }

    private func colour(_ text: String, _ code: Int) -> String {
        isOn && !text.isEmpty ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
    }

    private static func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
}

import ArgumentParser
import Glibc
import SystemPackage

/// Standard output and standard error, and whether a person looks at them.
enum Terminal {
    static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }
    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Results. A reader that has seen enough (`| head`) ends the program quietly, as it does elsewhere.
    static func print(_ line: String) {
        write(line + "\n", to: .standardOutput)
    }

    /// Progress and complaints.
    static func error(_ line: String) {
        write(line + "\n", to: .standardError)
    }

    static func errorRaw(_ text: String) {
        write(text, to: .standardError)
    }

    /// Columns of the terminal on standard error; 80 where that can't be told.
    static var width: Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String, to descriptor: FileDescriptor) {
        do {
            try descriptor.writeAll(text.utf8)
        } catch {
            // A reader that has closed the pipe has seen enough.
            if (error as? Errno) == .brokenPipe { exit(0) }
            guard descriptor == .standardOutput else { return }
            Self.error("worker: The result can't be written to standard output: \(error).")
            exit(ExitCode.inputOutput.rawValue)
        }
    }

    /// Text that came from outside, without what would move a terminal's cursor.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 32 && !(127...159).contains($0.value) }))
    }
}

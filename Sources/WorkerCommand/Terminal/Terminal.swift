import ArgumentParser
import Glibc
import SystemPackage

/// Standard output and standard error, and whether they are terminals.
enum Terminal {
    static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }
    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Prints results. If the reader has closed the pipe (`| head`), the program ends quietly.
    static func print(_ line: String) {
        write(line + "\n", to: .standardOutput)
    }

    /// Prints progress and error messages.
    static func error(_ line: String) {
        write(line + "\n", to: .standardError)
    }

    static func errorRaw(_ text: String) {
        write(text, to: .standardError)
    }

    static func outputRaw(_ text: String) {
        write(text, to: .standardOutput)
    }

    /// Columns of the terminal on standard error; 80 if unknown.
    static var width: Int { width(of: STDERR_FILENO) }
    static var outputWidth: Int { width(of: STDOUT_FILENO) }

    private static func width(of descriptor: CInt) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }

    private static func write(_ text: String, to descriptor: FileDescriptor) {
        do {
            try descriptor.writeAll(text.utf8)
        } catch {
            // The reader has closed the pipe: it needs no more.
            if (error as? Errno) == .brokenPipe { exit(0) }
            guard descriptor == .standardOutput else { return }
            Self.error("worker: The result can't be written to standard output: \(error).")
            exit(ExitCode.inputOutput.rawValue)
        }
    }

    /// Text from outside, without characters that would control the terminal.
    static func safe(_ text: String) -> String {
        String(
            String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 32 && !(127...159).contains($0.value) }))
    }
}

import Glibc
import SystemPackage

/// A browser without a window, for what is to be shown as browsers show it.
public enum Chromium {
    /// `nil` where none is installed; Debian's package is chromium-headless-shell. What that installs on the path is a
    /// script that waits for the browser: a signal would end the script alone.
    public static let program = ["/usr/lib/chromium/chromium-headless-shell", "chromium-headless-shell", "chromium"]
        .first { ChildProcess.find($0) != nil }
    public static let missing = "Chromium is not installed (chromium-headless-shell)."

    /// Opens a page and ends the browser when the condition holds.
    public static func open(
        _ url: String, within limit: Duration = .seconds(120), until isDone: @Sendable () -> Bool,
    ) async throws {
        guard let program else { return }
        try await withTemporaryDirectory { directory in
            // Its own sandbox can't be had by root or in containers, and the page is ours.
            let browser = try RunningProgram(
                program,
                [
                    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                    "--disable-background-networking", "--remote-debugging-port=0",
                    "--user-data-dir=\(directory.appending("profile").string)", url,
                ], files: ChildProcess.Files(),
                environment: ["HOME": directory.string, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"])
            let clock = ContinuousClock()
            let deadline = clock.now + limit
            while !isDone(), browser.exit == nil, clock.now < deadline {
                // A cancelled wait only looks again at once.
                try? await clock.sleep(for: .milliseconds(20))
            }
            browser.send(SIGTERM)
            try await browser.wait()
        }
    }
}

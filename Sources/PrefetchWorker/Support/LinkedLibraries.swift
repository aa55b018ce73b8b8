internal import Download
internal import Jobs

/// The libraries that this program is linked with. Those for images are linked with the helper; `worker doctor` asks it.
public enum LinkedLibraries {
    /// `libcurl/7.88.1` and `SQLite 3.40.1`.
    public static var versions: [String] {
        [
            Downloader.libraryVersion.split(separator: " ").first.map(String.init) ?? "libcurl",
            "SQLite \(DatabaseGate.libraryVersion)",
        ]
    }
}

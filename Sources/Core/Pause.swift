/// Pauses that last although the caller's task is cancelled.
public enum Pause {
    /// Sleeps for the whole time. In a cancelled task `Task.sleep` returns at once, and a loop that retries would repeat
    /// its work without a pause.
    public static func uncancelled(_ duration: Duration) async {
        // Best effort: no code cancels the detached task, so its sleep does not fail.
        await Task.detached { try? await Task.sleep(for: duration) }.value
    }
}

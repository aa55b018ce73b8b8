/// Waits that the caller's cancellation does not end.
public enum Pause {
    /// Waits although the task may be cancelled, in which a sleep would return at once: for what must not be repeated
    /// without a pause.
    public static func uncancelled(_ duration: Duration) async {
        // Best effort: this task is cancelled by nobody, so the sleep does not fail.
        await Task.detached { try? await Task.sleep(for: duration) }.value
    }
}

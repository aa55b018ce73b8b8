internal import Glibc
internal import Synchronization

/// A write that waits for its turn.
///
/// It holds neither the lock file nor SQLite's lock while it waits. If a program waited in SQLite while holding the
/// lock file, a shell with an open transaction would block all others, even those that only open the database.
struct TurnWait {
    private let waiting: WriteWaiting
    private let file: DatabaseFile
    private let path: String
    private var start: Int64?
    private var hasAnnounced = false

    private static let announceAfter: Int64 = 2_000

    init(_ waiting: WriteWaiting, file: DatabaseFile, path: String) {
        self.waiting = waiting
        self.file = file
        self.path = path
    }

    /// Sleeps for a moment. SQLite's own handler backs off to 100 ms and starves other programs for seconds; short
    /// jittered sleeps reduce the longest wait tenfold.
    ///
    /// - Throws: `busy` when the time is up, with a sentence that names the program that holds the lock.
    mutating func nap() throws(JobsError) {
        let now = SliceLedger.now() / 1_000_000
        let waited = now - (start ?? now)
        if start == nil { start = now }
        guard waited < min(waiting.limit, waiting.limitOfStop() ?? .max) else {
            throw JobsError(
                .busy,
                "The database \(path) is locked by \(holder)"
                    + (waiting.limit > 0 ? ", and has been for \(waited / 1_000) s." : "."))
        }
        if waited >= Self.announceAfter, !hasAnnounced {
            hasAnnounced = true
            waiting.announce?("Waiting for \(holder), which is writing to \(path).")
        }
        usleep(UInt32.random(in: 300...1_500))
    }

    private var holder: String {
        // The kernel's list may lack a line if locks change while it is read.
        for _ in 0..<5 {
            let holders =
                LockHolders.processes(.bytes, on: file.name + "-shm", bytes: LockHolders.writerByte)
                + LockHolders.processes(.whole, on: file.name + ".lock")
            if !holders.isEmpty { return LockHolders.names(holders) }
            usleep(2_000)
        }
        return "another program"
    }
}

/// How long a statement waits for other programs that have locked the database.
final class Patience: Sendable {
    let isPatient = Atomic(true)
    private let fresh: TurnWait?
    private let turn: Mutex<TurnWait?>

    /// Reads wait as well: for programs that recover the log after a crash, or keep all others out.
    private static let shortest: Int64 = 5_000

    init(_ waiting: WriteWaiting, file: DatabaseFile, path: String) {
        var waiting = waiting
        waiting.limit = max(waiting.limit, Self.shortest)
        fresh = TurnWait(waiting, file: file, path: path)
        turn = Mutex(fresh)
    }

    /// For a database that no other program has open.
    init() {
        fresh = nil
        turn = Mutex(nil)
    }

    /// Sleeps for a moment.
    ///
    /// - Parameter tries: how often the statement has waited already.
    /// - Returns: whether it tries again.
    func wait(_ tries: Int) -> Bool {
        guard isPatient.load(ordering: .relaxed) else { return false }
        return turn.withLock { turn in
            if tries == 0 { turn = fresh }
            do { try turn?.nap() } catch { return false }
            return turn != nil
        }
    }
}

internal import Glibc

/// How long a write waits for other programs that write.
public struct WriteWaiting: Sendable {
    /// In milliseconds; 0 doesn't wait at all.
    public var limit: Int64
    /// Told once, with a sentence that names the program in the way, when a write has waited for two seconds.
    public var announce: (@Sendable (String) -> Void)?

    /// 40 s are longer than any statement a person should run.
    public init(limit: Int64 = 40_000, announce: (@Sendable (String) -> Void)? = nil) {
        self.limit = limit
        self.announce = announce
    }

    /// For commands that only read: their small writes, such as when a file was used last, may be left out.
    public static let never = WriteWaiting(limit: 0)
}

/// One write that waits for its turn.
///
/// It holds neither our lock nor SQLite's while it waits. A program that waited in SQLite with our lock in hand would
/// make all others wait for a shell that has left a transaction open, also those that only open the database.
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

    /// Sleeps for a moment. SQLite's own handler backs off to 100 ms and starves a peer for seconds; short jittered
    /// naps cut the worst wait tenfold.
    ///
    /// - Throws: `busy` when the time is up, with a sentence that names the program in the way.
    mutating func nap() throws(JobsError) {
        let now = SliceLedger.now() / 1_000_000
        let waited = now - (start ?? now)
        if start == nil { start = now }
        guard waited < waiting.limit else {
            throw JobsError(
                .busy,
                "The database \(path) is locked by \(holder)"
                    + (waiting.limit > 0 ? ", and stayed so for \(waited / 1_000) s." : "."))
        }
        if waited >= Self.announceAfter, !hasAnnounced {
            hasAnnounced = true
            waiting.announce?("Waiting for \(holder), which is writing to \(path).")
        }
        usleep(UInt32.random(in: 300...1_500))
    }

    private var holder: String {
        let holders =
            LockHolders.processes(.bytes, on: file.name + "-shm", bytes: LockHolders.writerByte)
            + LockHolders.processes(.whole, on: file.name + ".lock")
        return holders.isEmpty ? "another program" : LockHolders.names(holders)
    }
}

internal import Jobs
internal import Synchronization

/// How many items a worker has on their way, by job, and which jobs don't move.
///
/// The first items of a job whose host says nothing would else be followed by hundreds of the same, while the items of other
/// hosts wait in the database and their places stay empty.
final class JobsInHand: Sendable {
    /// So many items of a job that doesn't move are enough.
    static let enough = 128
    /// How long ago the last item of a job that moves has come through, in milliseconds.
    static let moving: Int64 = 1_000

    private struct Entry {
        var count = 0
        var movedAt: Int64?
    }

    private struct State {
        var jobs: [JobID: Entry] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    /// Items of all jobs.
    var count: Int { state.withLock { $0.count } }

    func began(_ job: JobID) {
        state.withLock { state in
            state.jobs[job, default: Entry()].count += 1
            state.count += 1
        }
    }

    func cameThrough(_ job: JobID, at now: Int64 = monotonicMilliseconds()) {
        state.withLock { state in
            state.count -= 1
            guard var entry = state.jobs[job] else { return }
            entry.count -= 1
            entry.movedAt = now
            state.jobs[job] = entry.count > 0 ? entry : nil
        }
    }

    /// Items of jobs that move, or of which there isn't enough yet.
    var countInMotion: Int { count - stuck().values.reduce(0, +) }

    /// The jobs of which there is enough, and how much.
    func stuck(at now: Int64 = monotonicMilliseconds()) -> [JobID: Int] {
        state.withLock { state in
            guard state.count >= Self.enough else { return [:] }
            return state.jobs.filter { _, entry in
                entry.count >= Self.enough && entry.movedAt.map { now - $0 > Self.moving } ?? true
            }.mapValues(\.count)
        }
    }
}

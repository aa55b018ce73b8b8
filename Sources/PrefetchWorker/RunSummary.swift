public import Jobs

extension Worker {
    /// The result of a run.
    public struct Summary: Sendable {
        public typealias End = RunEnd

        public let end: End
        public let counts: RunStatistics.Counts
        /// Announced bytes of bodies that were rejected early.
        public let bytesSaved: Int64
        /// The jobs of this run's items, with their present progress.
        public let jobs: [JobProgress]
        /// The unfinished items of all jobs.
        public let backlog: Backlog
    }
}

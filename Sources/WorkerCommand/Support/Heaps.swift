import Glibc

/// Limits the C library's heaps (arenas). It makes one for nearly every thread, up to eight for each processor.
/// Long-lived allocations keep each heap's pages in use, so an idle worker's memory would grow from day to day.
enum Heaps {
    private typealias Set = @convention(c) (CInt, CInt) -> CInt

    /// `M_ARENA_MAX` of mallopt(3), which Swift's module of the C library leaves out.
    private static let most: CInt = -8

    /// Call it before the process has other threads. With four heaps a run took as long as with sixteen; with one it
    /// took longer. Does nothing with another C library, or if MALLOC_ARENA_MAX sets another number.
    static func limit() {
        guard getenv("MALLOC_ARENA_MAX") == nil, let mallopt = dlsym(nil, "mallopt") else { return }
        _ = unsafeBitCast(mallopt, to: Set.self)(most, 4)
    }
}

import Glibc

/// The C library's heaps. It makes one for nearly every thread, up to eight for each processor, and what lives on in each of them
/// keeps its pages from being given back: a worker that is idle would hold more from day to day.
enum Heaps {
    private typealias Set = @convention(c) (CInt, CInt) -> CInt

    /// `M_ARENA_MAX` of mallopt(3), which Swift's module of the C library leaves out.
    private static let most: CInt = -8

    /// Called before there are other threads. Four took no more time than sixteen where it was measured; one did. Does nothing
    /// with another C library, or where MALLOC_ARENA_MAX says something else.
    static func limit() {
        guard getenv("MALLOC_ARENA_MAX") == nil, let mallopt = dlsym(nil, "mallopt") else { return }
        _ = unsafeBitCast(mallopt, to: Set.self)(most, 4)
    }
}

internal import Glibc

/// Memory that the program no longer uses and the C library still holds.
enum FreeMemory {
    private typealias Trim = @convention(c) (Int) -> CInt

    /// Asked for by its name: Swift's module of the C library leaves it out, and other C libraries have none.
    private static let trim: Trim? = dlsym(nil, "malloc_trim").map { unsafeBitCast($0, to: Trim.self) }

    /// Gives it back to the system: malloc_trim(3). Takes some milliseconds.
    static func giveBack() { _ = trim?(0) }
}

internal import Glibc

/// Runs blocking code on threads of its own. They get no signals, which are for the program's own threads, and nothing waits
/// for their end.
public enum DetachedThread {
    /// Calls a C function with an argument that it owns from then on.
    ///
    /// - Returns: 0, or the error of pthread_create(3): then the argument is still the caller's.
    public static func start(
        _ argument: UnsafeMutableRawPointer,
        _ main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?,
    ) -> CInt {
        var thread = pthread_t()
        let code = withoutSignals { pthread_create(&thread, nil, main, argument) }
        if code == 0 { pthread_detach(thread) }
        return code
    }

    /// - Returns: 0, or the error of pthread_create(3).
    public static func start(_ body: @escaping @Sendable () -> Void) -> CInt {
        let cargo = Unmanaged.passRetained(Cargo(body))
        let code = start(cargo.toOpaque()) { argument in
            if let argument { Unmanaged<Cargo>.fromOpaque(argument).takeRetainedValue().run() }
            return nil
        }
        if code != 0 { cargo.release() }
        return code
    }

    private final class Cargo: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// A new thread inherits the mask of its maker.
    private static func withoutSignals(_ body: () -> CInt) -> CInt {
        var all = sigset_t()
        var previous = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        return body()
    }
}

import Core
import Glibc

/// Runs a ``TransferLoop`` on its own thread, since libcurl's loop blocks.
enum TransferThread {
    /// Passed to the thread, which then owns it.
    private final class Cargo {
        var loop: TransferLoop?
        let scheduler: DownloadScheduler

        init(loop: TransferLoop, scheduler: DownloadScheduler) {
            self.loop = loop
            self.scheduler = scheduler
        }
    }

    /// - Throws: `internalError` if no thread can be started.
    static func start(_ loop: sending TransferLoop, scheduler: DownloadScheduler) throws(Failure) {
        let cargo = Unmanaged.passRetained(Cargo(loop: loop, scheduler: scheduler))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        // Detached: the scheduler reports the end, after all of curl's resources are freed.
        pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let code = withoutSignals {
            pthread_create(&thread, &attributes, { TransferThread.main($0) }, cargo.toOpaque())
        }
        guard code == 0 else {
            cargo.release()
            throw Failure.internalFault("No thread can be made for downloads: error \(code).")
        }
    }

    private static func main(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let argument else { return nil }
        let cargo = Unmanaged<Cargo>.fromOpaque(argument).takeRetainedValue()
        cargo.loop?.run(cargo.scheduler)
        cargo.loop = nil
        cargo.scheduler.closed()
        return nil
    }

    /// A new thread inherits the signal mask: signals are for the program's own threads, not for libcurl's system
    /// calls.
    private static func withoutSignals(_ body: () -> CInt) -> CInt {
        var all = sigset_t()
        var previous = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &previous)
        defer { pthread_sigmask(SIG_SETMASK, &previous, nil) }
        return body()
    }
}

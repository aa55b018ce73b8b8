import Core

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

    /// - Throws: `Failure.internalFault` if no thread can be started.
    static func start(_ loop: sending TransferLoop, scheduler: DownloadScheduler) throws(Failure) {
        let cargo = Unmanaged.passRetained(Cargo(loop: loop, scheduler: scheduler))
        // The scheduler reports the end, after all of curl's resources are freed.
        let code = DetachedThread.start(cargo.toOpaque()) { TransferThread.main($0) }
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
}

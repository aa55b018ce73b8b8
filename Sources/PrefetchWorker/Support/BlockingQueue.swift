internal import Dispatch

/// Runs calls that block on the disk away from Swift's cooperative threads, at most `width` at a time.
final class BlockingQueue: Sendable {
    private let queue: DispatchQueue
    private let places: DispatchSemaphore

    init(_ label: String, width: Int = 1) {
        queue = DispatchQueue(label: label, attributes: width > 1 ? [.concurrent] : [])
        places = DispatchSemaphore(value: width)
    }

    func run<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withCheckedContinuation { continuation in
            queue.async { [places] in
                places.wait()
                let result = body()
                places.signal()
                continuation.resume(returning: result)
            }
        }
    }
}

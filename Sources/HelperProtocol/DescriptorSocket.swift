internal import CDescriptorPassing
internal import Glibc
package import SystemPackage

/// One end of a socket pair that carries whole messages and open file descriptors between worker and helper.
///
/// `@unchecked` is not needed: the descriptor never changes, and only one thread at a time uses each end.
package final class DescriptorSocket: Sendable {
    /// Enough for 64 variants with their names.
    package static let maxMessage = 128 * 1_024

    package let descriptor: FileDescriptor

    package init(owning descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    deinit {
        // Best effort: the peer sees the end of the connection either way.
        try? descriptor.close()
    }

    package static func pair() throws(Errno) -> (FileDescriptor, FileDescriptor) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw Errno(rawValue: errno) }
        return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
    }

    package static let maxDescriptors = Int(pw_max_descriptors)

    package func send(_ bytes: [UInt8], _ descriptors: [FileDescriptor] = []) throws(Errno) {
        let numbers = descriptors.map(\.rawValue)
        while pw_send(descriptor.rawValue, bytes, bytes.count, numbers, numbers.count) < 0 {
            guard errno == EINTR else { throw Errno(rawValue: errno) }
        }
    }

    /// Waits for a message.
    ///
    /// - Returns: `nil` if the peer has ended.
    package func receive() throws(Errno) -> (bytes: [UInt8], descriptors: [FileDescriptor])? {
        var numbers = [Int32](repeating: -1, count: Int(pw_max_descriptors))
        var count = 0
        var received = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.maxMessage) { buffer, initialized in
            guard let base = buffer.baseAddress else { return }
            repeat {
                received = pw_receive(descriptor.rawValue, base, buffer.count, &numbers, &count)
            } while received < 0 && errno == EINTR
            initialized = max(received, 0)
        }
        if received < 0 {
            let reason = Errno(rawValue: errno)
            for number in numbers[..<count] {
                // The descriptors came with a message that was too long, and no other code knows them. Best effort:
                // close(2) frees the number even if it fails.
                try? FileDescriptor(rawValue: number).close()
            }
            if reason == .connectionReset { return nil }
            throw reason
        }
        return received == 0 ? nil : (bytes, numbers[..<count].map { FileDescriptor(rawValue: $0) })
    }

    /// Waits until a message or the peer's end can be received.
    ///
    /// - Returns: whether it can; `false` after `milliseconds` have passed.
    package func wait(milliseconds: Int64) throws(Errno) -> Bool {
        let deadline = ContinuousClock.now + .milliseconds(milliseconds)
        while true {
            var entry = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
            let left = max(.zero, deadline - .now) / .milliseconds(1)
            let ready = poll(&entry, 1, Int32(clamping: Int64(left.rounded(.up))))
            if ready > 0 { return true }
            if ready == 0 { return false }
            guard errno == EINTR else { throw Errno(rawValue: errno) }
        }
    }
}

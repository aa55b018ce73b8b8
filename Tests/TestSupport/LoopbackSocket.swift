import Glibc
import SystemPackage

/// A TCP socket on 127.0.0.1. Its server closes it; any thread may shut it down.
struct LoopbackSocket: Sendable {
    let descriptor: Int32
    let port: UInt16

    /// - Parameter host: an address of the loopback network.
    static func listening(on host: String = "127.0.0.1") throws -> LoopbackSocket {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Errno(rawValue: errno) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { throw Errno.invalidArgument }
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isReady = withUnsafeMutableBytes(of: &address) { bytes in
            guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return false }
            return bind(descriptor, pointer, length) == 0 && listen(descriptor, 512) == 0
                && getsockname(descriptor, pointer, &length) == 0
        }
        guard isReady else {
            let error = Errno(rawValue: errno)
            Glibc.close(descriptor)
            throw error
        }
        return LoopbackSocket(descriptor: descriptor, port: UInt16(bigEndian: address.sin_port))
    }

    /// The next connection; nil when the listener was shut down.
    func accept() -> LoopbackSocket? {
        while true {
            let accepted = Glibc.accept(descriptor, nil, nil)
            if accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                // Small parts shall leave when they are sent.
                var on: Int32 = 1
                setsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
                return LoopbackSocket(descriptor: accepted, port: port)
            }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Whether all of it could be sent.
    func send(_ bytes: [UInt8]) -> Bool {
        bytes.withUnsafeBytes { bytes in
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = UnsafeRawBufferPointer(rebasing: rest)
                let sent = Glibc.send(descriptor, part.baseAddress, part.count, Int32(MSG_NOSIGNAL))
                if sent < 0, errno == EINTR { continue }
                guard sent > 0 else { return false }
                rest = rest.dropFirst(sent)
            }
            return true
        }
    }

    /// Some bytes; nil at the end.
    func receive() -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: 16 << 10) { buffer, count in
            repeat { count = recv(descriptor, buffer.baseAddress, buffer.count, 0) } while count < 0 && errno == EINTR
            count = max(0, count)
        }
        return bytes.isEmpty ? nil : bytes
    }

    /// Waits until the client leaves (true) or the time is over (false). Without a time, only the former.
    @discardableResult
    func waitForClient(milliseconds: Int?) -> Bool {
        // POLLRDHUP, which Glibc's module leaves out.
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&entry, 1, Int32(milliseconds ?? -1)) > 0
    }

    /// Makes closing send a RST instead of a FIN.
    func resetOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    func close() { Glibc.close(descriptor) }
}

enum LoopbackThread {
    private final class Body {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Runs a blocking body on a detached thread of its own.
    static func start(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
                return nil
            }, box.toOpaque(),
        )
        precondition(code == 0, "no thread for the loopback origin: error \(code)")
        pthread_detach(thread)
    }
}

import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import HelperProtocol
@testable import PrefetchWorker

@Suite("The socket to a helper", .timeLimit(.minutes(15)))
struct DescriptorSocketTests {
    private func pair() throws -> (DescriptorSocket, DescriptorSocket) {
        let (one, other) = try DescriptorSocket.pair()
        return (DescriptorSocket(owning: one), DescriptorSocket(owning: other))
    }

    private func inode(_ descriptor: FileDescriptor) throws -> ino_t {
        var info = stat()
        guard fstat(descriptor.rawValue, &info) == 0 else { throw Errno(rawValue: errno) }
        return info.st_ino
    }

    @Test func `Messages keep their boundaries and their order`() throws {
        let (one, other) = try pair()
        try one.send([1, 2, 3])
        try one.send([4])
        #expect(try other.receive()?.bytes == [1, 2, 3])
        #expect(try other.receive()?.bytes == [4])
        try other.send([5])
        #expect(try one.receive()?.bytes == [5])
    }

    @Test(arguments: [1, 2, 65, 128])
    func `Descriptors arrive with their message, in order, and aren't inherited`(_ count: Int) throws {
        try withTemporaryDirectory { folder in
            let (one, other) = try pair()
            let files = try (0..<count).map { number in
                try FileDescriptor.open(
                    folder.appending("\(number)"), .readWrite, options: [.create], permissions: .ownerReadWrite)
            }
            defer { for file in files { try? file.close() } }
            try one.send([7], files)
            let (bytes, arrived) = try #require(try other.receive())
            defer { for file in arrived { try? file.close() } }
            #expect(bytes == [7])
            #expect(try arrived.map(inode) == files.map(inode))
            #expect(arrived.allSatisfy { fcntl($0.rawValue, F_GETFD) & FD_CLOEXEC != 0 })
        }
    }

    @Test func `More descriptors than fit are refused`() throws {
        let (one, _) = try pair()
        #expect(throws: Errno(rawValue: E2BIG)) {
            try one.send([1], Array(repeating: .standardError, count: 129))
        }
    }

    @Test func `A closed peer ends the reading, and a send to it fails`() throws {
        let (ours, theirs) = try DescriptorSocket.pair()
        let socket = DescriptorSocket(owning: ours)
        try theirs.close()
        #expect(try socket.wait(milliseconds: 0))
        #expect(try socket.receive()?.bytes == nil)
        #expect(throws: Errno.brokenPipe) { try socket.send([1]) }
    }

    @Test func `A message that was sent before the peer closed still arrives`() throws {
        let (ours, theirs) = try DescriptorSocket.pair()
        let socket = DescriptorSocket(owning: ours)
        do { try DescriptorSocket(owning: theirs).send([1, 2]) }
        #expect(try socket.receive()?.bytes == [1, 2])
        #expect(try socket.receive()?.bytes == nil)
    }

    @Test func `A message of the maximum length arrives, and a longer message is an error`() throws {
        let (one, other) = try pair()
        try one.send([UInt8](repeating: 1, count: DescriptorSocket.maxMessage))
        #expect(try other.receive()?.bytes.count == DescriptorSocket.maxMessage)
        try one.send([UInt8](repeating: 1, count: DescriptorSocket.maxMessage + 1))
        #expect(throws: Errno.messageTooLong) { _ = try other.receive() }
        try one.send([9])
        #expect(try other.receive()?.bytes == [9])
    }

    @Test func `The descriptors of a message that is too long are closed`() throws {
        let (one, other) = try pair()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        let reading = FileDescriptor(rawValue: ends[0]), writing = FileDescriptor(rawValue: ends[1])
        defer { try? reading.close() }
        try one.send([UInt8](repeating: 1, count: DescriptorSocket.maxMessage + 1), [writing])
        try writing.close()
        #expect(throws: Errno.messageTooLong) { _ = try other.receive() }
        // The pipe ends only when its last writing end is closed.
        var entry = pollfd(fd: reading.rawValue, events: 0, revents: 0)
        #expect(poll(&entry, 1, 1_000) == 1)
        #expect(Int32(entry.revents) & POLLHUP != 0)
    }

    @Test func `A wait ends after its time, or with a message`() throws {
        let (one, other) = try pair()
        let start = monotonicMilliseconds()
        #expect(try !one.wait(milliseconds: 30))
        #expect(monotonicMilliseconds() - start >= 30)
        try other.send([1])
        #expect(try one.wait(milliseconds: 10_000))
    }
}

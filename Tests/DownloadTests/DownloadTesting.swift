import Core
import Download
import Glibc
import SystemPackage
import Testing

/// Starts a downloader that may use loopback, lends it, shuts it down, and checks that nothing is left in it.
func withDownloader<R>(
    inspect: @escaping @Sendable (UnsafeRawBufferPointer) -> BodyVerdict = { _ in .accept },
    makeFile: @escaping @Sendable () throws -> FileDescriptor = unnamedFile,
    makeReservation: @escaping @Sendable (Int64?) -> (any SpaceReservation)? = { _ in nil },
    configure: (inout DownloadConfiguration) -> Void = { _ in },
    _ body: (Downloader) async throws -> R,
) async throws -> R {
    var configuration = DownloadConfiguration()
    configuration.addresses = try AddressPolicy(allowing: ["loopback"])
    // Origins are held up until something else has happened, which takes long on a slow machine.
    configuration.silenceTimeout = .seconds(240)
    configure(&configuration)
    let downloader = try Downloader(
        configuration: configuration, makeFile: makeFile, makeReservation: makeReservation, inspect: inspect)
    let result = try await body(downloader)
    await downloader.shutdown()
    #expect(downloader.counts.running == 0)
    #expect(downloader.counts.waiting == 0)
    return result
}

@Sendable func unnamedFile() throws -> FileDescriptor { try unnamedFile(in: "/tmp") }

func unnamedFile(in folder: FilePath) throws -> FileDescriptor {
    // O_TMPFILE, which neither Glibc's module nor FilePath's options have.
    let options = FileDescriptor.OpenOptions(rawValue: 0o20_200_000).union(.closeOnExec)
    return try FileDescriptor.open(folder, .readWrite, options: options, permissions: [.ownerReadWrite])
}

extension DownloadOutcome<BodyFile> {
    var failure: Failure? { if case .failed(let failure) = self { failure } else { nil } }

    var code: FailureClass? { failure?.failureClass }

    /// The host that it waited for when it was sent away.
    var crowdedHost: String? { if case .shed(let host) = self { host } else { nil } }

    var file: BodyFile? { if case .body(let file, _) = self { file } else { nil } }

    var response: DownloadResponse? {
        switch self {
        case .body(_, let response), .notModified(let response): response
        case .failed(let failure): failure.response
        case .shed: nil
        }
    }
}

extension BodyFile {
    func bytes() throws -> [UInt8] {
        try withDescriptor { descriptor in
            try [UInt8](unsafeUninitializedCapacity: Int(size)) { buffer, count in
                count = try descriptor.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
            }
        }
    }
}

/// How many descriptors of this process stand for files in a directory, removed ones included.
func openFiles(in folder: FilePath) -> Int {
    (0..<4096).count { number in
        var target = [CChar](repeating: 0, count: 1024)
        let length = readlink("/proc/self/fd/\(number)", &target, target.count)
        let bytes = target.prefix(max(0, length)).map { UInt8(bitPattern: $0) }
        return String(decoding: bytes, as: UTF8.self).hasPrefix("\(folder)/")
    }
}

/// Waits until a condition holds, at most five minutes.
func eventually(_ condition: () -> Bool) async -> Bool {
    for _ in 0..<30_000 {
        if condition() { return true }
        // A cancelled wait just looks again at once.
        try? await Task.sleep(for: .milliseconds(10))
    }
    return condition()
}

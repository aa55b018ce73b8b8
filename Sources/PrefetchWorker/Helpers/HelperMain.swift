internal import CDescriptorPassing
internal import FoundationEssentials
internal import Glibc
internal import Imaging
internal import SystemPackage

/// The life of a helper process: one image after the other, until the worker is gone.
///
/// It is handed descriptors, never paths, and holds nothing that a crash could lose.
public enum HelperMain {
    /// Bytes of memory a helper may allocate (`RLIMIT_DATA`).
    static let memoryLimit: UInt64 = 1 << 30

    /// A helper's first word, once its libraries are loaded.
    static let ready = Array("ready".utf8)

    /// Serves requests on standard input until its peer closes it. Called by the hidden subcommand.
    public static func run() -> Int32 {
        limitMemory()
        let socket = DescriptorSocket(owning: FileDescriptor(rawValue: dup(STDIN_FILENO)))
        exitWhenOrphaned()
        do {
            try ImagingRuntime.start()
            try socket.send(ready)
            while let (bytes, descriptors) = try socket.receive() {
                defer { close(descriptors) }
                try socket.send(Array(JSONEncoder().encode(answer(bytes, descriptors))))
            }
            return 0
        } catch {
            complain("helper \(getpid()) stops: \(error)")
            return 70
        }
    }

    private static func answer(_ bytes: [UInt8], _ descriptors: [FileDescriptor]) -> HelperReply {
        do {
            let request = try JSONDecoder().decode(HelperRequest.self, from: Data(bytes))
            guard let source = descriptors.first, descriptors.count == request.variants.count + 1 else {
                return .failed(ImagingError(code: .transform, message: "The helper got \(descriptors.count) files."))
            }
            limitProcessorTime(request.seconds)
            let outputs = zip(request.variants, descriptors.dropFirst()).map { VariantOutput(spec: $0, output: $1) }
            return .made(try Transformer(limits: request.limits).transform(source, into: outputs))
        } catch let error as ImagingError {
            return .failed(error)
        } catch {
            return .failed(ImagingError(code: .transform, message: "The helper can't read its request: \(error)"))
        }
    }

    private static func close(_ descriptors: [FileDescriptor]) {
        for descriptor in descriptors {
            // The worker has descriptors of its own to these files.
            try? descriptor.close()
        }
    }

    private static func limitMemory() {
        var limit = rlimit(rlim_cur: rlim_t(memoryLimit), rlim_max: rlim_t(memoryLimit))
        if setrlimit(__rlimit_resource_t(2), &limit) != 0 {  // RLIMIT_DATA
            complain("helper \(getpid()): memory can't be limited: \(Errno(rawValue: errno))")
        }
        // A crash is answered by a new helper; its memory image helps nobody and fills the disk.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(4), &none)  // RLIMIT_CORE
    }

    /// The limit counts from the process's start, so it is moved along with every image. SIGXCPU ends the helper.
    private static func limitProcessorTime(_ seconds: Int) {
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        let spent = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1
        var limit = rlimit(rlim_cur: rlim_t(spent + seconds), rlim_max: rlim_t.max)
        setrlimit(__rlimit_resource_t(0), &limit)  // RLIMIT_CPU
    }

    /// A helper in the middle of a long image doesn't outlive its worker: a thread waits for the socket's end.
    private static func exitWhenOrphaned() {
        var thread = pthread_t()
        pthread_create(
            &thread, nil,
            { _ in
                var entry = pollfd(fd: STDIN_FILENO, events: pw_peer_closed, revents: 0)
                while poll(&entry, 1, -1) < 0 && errno == EINTR {}
                _exit(0)
            }, nil,
        )
    }

    private static func complain(_ text: String) {
        // Nobody is left to tell if standard error is gone.
        _ = try? FileDescriptor.standardError.writeAll((text + "\n").utf8)
    }
}

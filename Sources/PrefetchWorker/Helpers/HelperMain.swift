internal import CDescriptorPassing
internal import FoundationEssentials
internal import Glibc
public import Imaging
internal import Synchronization
internal import SystemPackage

/// The life of a helper process: one image after the other, until the worker is gone.
///
/// It is handed descriptors, never paths, and holds nothing that a crash could lose.
public enum HelperMain {
    /// Bytes of memory a helper may allocate (`RLIMIT_DATA`).
    static let memoryLimit: UInt64 = 1 << 30

    /// Bytes a helper may write into one file (`RLIMIT_FSIZE`): no variant comes near.
    static let fileLimit: UInt64 = 1 << 30

    /// Whether a file would have become longer than it may: no encoder says so in a way of its own.
    private static let hasOutgrown = Atomic(false)

    /// Open files of a helper (`RLIMIT_NOFILE`): a full message's, and some.
    static let descriptorLimit: UInt64 = 256

    /// Makes a program its own helper: called first of all in `main`, before there is a second thread. It returns only
    /// in a process that is none, which is one whose first argument isn't `helper`.
    ///
    /// - Parameter extensions: what the worker's configuration gets, too.
    public static func runIfHelper(_ extensions: ImagingExtensions = ImagingExtensions()) {
        let words = CommandLine.arguments.dropFirst()
        guard words.first == "helper" else { return }
        exit(words.contains("--test-sandbox") ? testSandbox() : run(extensions))
    }

    /// Serves requests on standard input until its peer closes it. Called by the hidden subcommand, on the process's
    /// first thread and before there is another.
    ///
    /// - Parameter extensions: what the worker's configuration has, too.
    public static func run(_ extensions: ImagingExtensions = ImagingExtensions()) -> Int32 {
        limitResources()
        let socket = DescriptorSocket(owning: FileDescriptor(rawValue: dup(STDIN_FILENO)))
        var sandbox = Sandbox()
        sandbox.prepare()
        do {
            try ImagingRuntime.start()
            ImagingRuntime.loadPlugins()
            let protections = sandbox.close()
            exitWhenOrphaned()
            try socket.send(Array(JSONEncoder().encode(protections)))
            while let (bytes, descriptors) = try socket.receive() {
                defer { close(descriptors) }
                try socket.send(Array(JSONEncoder().encode(answer(bytes, descriptors, extensions))))
            }
            return 0
        } catch {
            complain("helper \(getpid()) stops: \(error)")
            return 70
        }
    }

    /// Tries on itself what the sandbox forbids, and prints a `SandboxReport` as JSON.
    ///
    /// - Returns: the exit code: 0 when all was refused.
    public static func testSandbox() -> Int32 {
        let report = SandboxReport.make()
        do {
            try FileDescriptor.standardOutput.writeAll(JSONEncoder().encode(report) + Array("\n".utf8))
            return report.protections.isComplete && report.leaks.isEmpty ? 0 : 70
        } catch {
            complain("helper \(getpid()): the report can't be written: \(error)")
            return 70
        }
    }

    private static func answer(
        _ bytes: [UInt8], _ descriptors: [FileDescriptor], _ extensions: ImagingExtensions,
    ) -> HelperReply {
        do {
            let request = try JSONDecoder().decode(HelperRequest.self, from: Data(bytes))
            limitProcessorTime(request.seconds)
            limitFiles(request.fileBytes)
            if let bytes = request.preview, descriptors.count == 2 {
                let maker = PreviewMaker(limits: request.limits)
                return .preview(try maker.preview(descriptors[0], count: bytes, into: descriptors[1]))
            }
            if request.factsOnly == true {
                let transformer = Transformer(limits: request.limits, extensions: extensions, isAlone: true)
                return .facts(
                    descriptors.map { source in
                        limitProcessorTime(request.seconds)
                        return facts(of: source, transformer)
                    })
            }
            let count = 1 + request.variants.count + request.assets.count
            guard let source = descriptors.first, descriptors.count == count else {
                return .failed(ImagingError(code: .transform, message: "The helper got \(descriptors.count) files."))
            }
            let outputs = zip(request.variants, descriptors.dropFirst()).map { VariantOutput(spec: $0, output: $1) }
            let pictures = zip(request.assets, descriptors.dropFirst(1 + request.variants.count))
            let assets = Dictionary(uniqueKeysWithValues: pictures.map { ($0, $1) })
            hasOutgrown.store(false, ordering: .relaxed)
            return .made(
                try Transformer(limits: request.limits, extensions: extensions, isAlone: true)
                    .transform(
                        source, into: outputs, assets: assets,
                        tolerance: request.tolerance))
        } catch let error as ImagingError {
            return error.code == .encode && hasOutgrown.load(ordering: .relaxed) ? .outgrown : .failed(error)
        } catch {
            return .failed(ImagingError(code: .transform, message: "The helper can't read its request: \(error)"))
        }
    }

    /// Pixels of a picture that is decoded together with others: none of them should wait for long.
    private static let mostPixels = 1 << 20

    private static func facts(of source: FileDescriptor, _ transformer: Transformer) -> FactsReply {
        do {
            return try transformer.report(ofStill: source, upTo: mostPixels).map { .facts($0.facts) } ?? .undecided
        } catch {
            // It is asked about again, by itself, and then says why.
            return .undecided
        }
    }

    private static func close(_ descriptors: [FileDescriptor]) {
        for descriptor in descriptors {
            // The worker has descriptors of its own to these files.
            try? descriptor.close()
        }
    }

    private static func limitResources() {
        limit(__rlimit_resource_t(2), to: memoryLimit)  // RLIMIT_DATA
        limit(__rlimit_resource_t(1), to: fileLimit)  // RLIMIT_FSIZE
        limit(__rlimit_resource_t(7), to: descriptorLimit)  // RLIMIT_NOFILE
        // A crash is answered by a new helper; its memory image helps nobody and fills the disk.
        limit(__rlimit_resource_t(4), to: 0)  // RLIMIT_CORE
        // A file that grows too long is a failed write, not the end of the helper. Touched once before, so that a handler
        // finds it made.
        hasOutgrown.store(false, ordering: .relaxed)
        signal(SIGXFSZ) { _ in HelperMain.hasOutgrown.store(true, ordering: .relaxed) }
    }

    private static func limit(_ resource: __rlimit_resource_t, to value: UInt64) {
        var limit = rlimit()
        getrlimit(resource, &limit)
        let value = min(rlim_t(value), limit.rlim_max)
        limit = rlimit(rlim_cur: value, rlim_max: value)
        if setrlimit(resource, &limit) != 0 {
            complain("helper \(getpid()): limit \(resource) can't be set: \(Errno(rawValue: errno))")
        }
    }

    /// The limit counts from the process's start, so it is moved along with every image. SIGXCPU ends the helper.
    private static func limitProcessorTime(_ seconds: Int) {
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        let spent = used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(0), &limit)
        limit.rlim_cur = min(rlim_t(spent + seconds), limit.rlim_max)
        setrlimit(__rlimit_resource_t(0), &limit)  // RLIMIT_CPU
    }

    /// Moved along with every image, too; the process's own stays the most that it can be.
    private static func limitFiles(_ bytes: Int64?) {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(1), &limit)
        limit.rlim_cur = min(bytes.map { rlim_t(max(0, $0)) } ?? limit.rlim_max, limit.rlim_max)
        setrlimit(__rlimit_resource_t(1), &limit)  // RLIMIT_FSIZE
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

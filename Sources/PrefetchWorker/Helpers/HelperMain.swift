internal import CDescriptorPassing
internal import Core
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
    static let hasOutgrown = Atomic(false)

    /// Open files of a helper (`RLIMIT_NOFILE`): a full message's, and some.
    static let descriptorLimit: UInt64 = 256

    /// Makes a program its own helper: called first of all in `main`, before there is a second thread. It returns only
    /// in a process that is none, which is one whose first argument isn't `helper`.
    ///
    /// - Parameter extensions: those of the worker's configuration.
    public static func runIfHelper(_ extensions: ImagingExtensions = ImagingExtensions()) {
        let words = CommandLine.arguments.dropFirst()
        guard words.first == "helper" else { return }
        exit(words.contains("--test-sandbox") ? testSandbox() : run(extensions))
    }

    /// Serves requests on standard input until its peer closes it. Called by the hidden subcommand, on the process's
    /// first thread and before there is another.
    ///
    /// - Parameter extensions: those of the worker's configuration.
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

    /// Tries every forbidden action on itself, and prints a `SandboxReport` as JSON.
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
                return .failed(Failure(.transform, "The helper got \(descriptors.count) files."))
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
        } catch let error as Failure {
            return error.failureClass == .encode && hasOutgrown.load(ordering: .relaxed) ? .outgrown : .failed(error)
        } catch {
            return .failed(Failure(.transform, "The helper can't read its request: \(error)"))
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

    static func complain(_ text: String) {
        // Without standard error there is no way left to tell.
        _ = try? FileDescriptor.standardError.writeAll((text + "\n").utf8)
    }
}

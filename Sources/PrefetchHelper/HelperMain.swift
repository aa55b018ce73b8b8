internal import CDescriptorPassing
internal import Core
internal import FoundationEssentials
internal import Glibc
internal import HelperProtocol
public import ImageFiles
internal import Imaging
internal import Synchronization
internal import SystemPackage

/// The main function of a helper process: it handles one image after the other, until the worker closes the socket.
///
/// It gets descriptors, never paths, and keeps no state that a crash could lose.
public enum HelperMain {
    /// Whether a file would have exceeded its limit. Encoders do not report this as an error of its own.
    static let hasOutgrown = Atomic(false)

    /// Makes the program its own helper. Call it first in `main`, before there is a second thread. In a helper process
    /// it never returns; it returns in a process whose first argument isn't `helper`.
    ///
    /// - Parameter extensions: the same as in the worker's configuration.
    public static func runIfHelper(_ extensions: ImagingExtensions = ImagingExtensions()) {
        let words = CommandLine.arguments.dropFirst()
        guard words.first == "helper" else { return }
        exit(main(Array(words.dropFirst()), extensions))
    }

    /// The main function of a program that is only a helper.
    ///
    /// - Parameter words: none for a helper; `--describe`, `--describe --formats` or `--test-sandbox` for a report.
    /// - Returns: the exit code.
    public static func main(_ words: [String], _ extensions: ImagingExtensions = ImagingExtensions()) -> Int32 {
        if words.contains("--test-sandbox") { return testSandbox() }
        if words.contains("--describe") { return describe(extensions, triesFormats: words.contains("--formats")) }
        return run(extensions)
    }

    /// Serves requests on standard input until its peer closes it. Called by the hidden subcommand, on the process's
    /// first thread and before there is another.
    ///
    /// - Parameter extensions: the same as in the worker's configuration.
    public static func run(_ extensions: ImagingExtensions = ImagingExtensions()) -> Int32 {
        limitResources()
        let socket = DescriptorSocket(owning: FileDescriptor(rawValue: dup(STDIN_FILENO)))
        var sandbox = Sandbox()
        sandbox.prepare()
        do {
            try ImagingRuntime.start()
            ImagingRuntime.loadPlugins()
            var protections = sandbox.close()
            protections.coder = extensions.coders.version
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
            // Transformer reads the header and plans the variants; TransformRun.write makes them.
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

    /// Pixels up to which a picture is decoded in a group, so that the others do not wait for long.
    private static let maxPixels = 1 << 20

    private static func facts(of source: FileDescriptor, _ transformer: Transformer) -> FactsReply {
        do {
            return try transformer.report(ofStill: source, upTo: maxPixels).map { .facts($0.facts) } ?? .undecided
        } catch {
            // The pool sends this source again in a request of its own, whose reply has the reason.
            return .undecided
        }
    }

    private static func close(_ descriptors: [FileDescriptor]) {
        for descriptor in descriptors {
            // Best effort: the worker has its own descriptors of these files.
            try? descriptor.close()
        }
    }

    /// Ends the helper when its worker has ended, even during a long image: a thread waits for the socket's end.
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
        // Best effort: without standard error there is no other way to report.
        _ = try? FileDescriptor.standardError.writeAll((text + "\n").utf8)
    }
}

import ContentCache
import Core
import Dispatch
import Foundation
import Glibc
import Logging
import SystemPackage
import TestSupport

@testable import HelperProtocol
@testable import ImageFiles
@testable import Imaging
@testable import PrefetchWorker
@testable import Variants

/// A real helper process that is asked for one picture after the other, and watched while it works.
struct PictureHelper: Sendable {
    /// What came of one picture.
    struct Answer: Sendable, CustomStringConvertible {
        /// A class, `done`, `died` or `late`.
        var end: String
        var message = ""
        var report: TransformReport?
        /// The variants' bytes.
        var files: [[UInt8]] = []
        var seconds = 0.0
        /// The most memory that the helper has ever held, in MiB.
        var peak = 0

        var isDone: Bool { end == "done" }
        /// Whether it is one of the ends that a picture may have.
        var isOrderly: Bool { isDone || FailureClass(rawValue: end) != nil }

        var description: String { "\(end) after \(seconds) s, \(peak) MiB: \(message)" }
    }

    let process: pid_t
    private let socket: DescriptorSocket
    private let cache: ContentCache
    private let limits: ImageLimits
    private let thread = DispatchQueue(label: "picture")

    /// Lends a helper with a sandbox, as the worker starts them.
    static func lend<R: Sendable>(
        limits: ImageLimits = ImageLimits(), _ body: @Sendable (PictureHelper) async throws -> R,
    ) async throws -> R {
        try await withTemporaryDirectory { folder in
            let configuration = HelperConfiguration(
                count: 1, executable: Workplace.executable.string, arguments: [])
            let cache = try ContentCache(directory: folder.appending("cache"))
            let pool = HelperPool(
                configuration: configuration, limits: limits, cache: cache,
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            return try await pool.withHelper { helper in
                defer { helper.kill() }
                try await pool.greet(helper, on: DispatchQueue(label: "greeting"))
                return try await body(
                    PictureHelper(process: helper.process, socket: helper.socket, cache: cache, limits: limits))
            }
        }
    }

    private init(process: pid_t, socket: DescriptorSocket, cache: ContentCache, limits: ImageLimits) {
        self.process = process
        self.socket = socket
        self.cache = cache
        self.limits = limits
    }

    /// - Parameter variants: in short.
    func make(_ source: [UInt8], _ variants: String, within seconds: Int = 60) async throws -> Answer {
        let file = try cache.makeFile()
        try file.descriptor.writeAll(source)
        return try await make(file.descriptor, variants, within: seconds)
    }

    func make(_ source: FileDescriptor, _ variants: String, within seconds: Int = 60) async throws -> Answer {
        let specs = try VariantSpec.parseList(variants)
        return try await withCheckedThrowingContinuation { continuation in
            thread.async { continuation.resume(with: Result { try ask(source, specs, seconds) }) }
        }
    }

    private func ask(_ source: FileDescriptor, _ specs: [VariantSpec], _ seconds: Int) throws -> Answer {
        let files = try specs.map { _ in try cache.makeFile() }
        let clock = ContinuousClock()
        let start = clock.now
        var answer = try answer(source, specs, files, seconds)
        answer.seconds = (clock.now - start) / .seconds(1)
        answer.peak = TestSupport.ProcessTable.peakMemory(of: process) ?? 0
        if answer.isDone { answer.files = try files.map(Self.bytes) }
        return answer
    }

    private func answer(
        _ source: FileDescriptor, _ specs: [VariantSpec], _ files: [BlobFile], _ seconds: Int,
    ) throws -> Answer {
        let request = HelperRequest(limits: limits, variants: specs, assets: [], seconds: seconds)
        do {
            try socket.send(Array(JSONEncoder().encode(request)), [source] + files.map(\.descriptor))
        } catch {
            return Answer(end: "died")
        }
        guard try socket.wait(milliseconds: Int64(seconds) * 1_000) else { return Answer(end: "late") }
        guard let (bytes, _) = try socket.receive() else { return Answer(end: "died") }
        switch try JSONDecoder().decode(HelperReply.self, from: Data(bytes)) {
        case .made(let report): return Answer(end: "done", report: report)
        case .facts: return Answer(end: "facts", message: "")
        case .failed(let error): return Answer(end: error.failureClass.rawValue, message: error.message)
        case .preview: return Answer(end: "preview")
        case .outgrown: return Answer(end: "encode", message: "A file got too long.")
        }
    }

    private static func bytes(_ file: BlobFile) throws -> [UInt8] {
        let count = Int(try file.descriptor.seek(offset: 0, from: .end))
        return try [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = try file.descriptor.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

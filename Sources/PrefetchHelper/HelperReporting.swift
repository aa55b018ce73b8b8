internal import Core
internal import FoundationEssentials
internal import Glibc
internal import HelperProtocol
internal import ImageFiles
internal import Imaging
internal import SystemPackage

// The reports that a helper program prints on request.
extension HelperMain {
    /// Prints a ``HelperDescription`` as JSON.
    ///
    /// - Parameter triesFormats: whether to start the libraries and try each format, which takes longer than the rest.
    static func describe(_ extensions: ImagingExtensions, triesFormats: Bool) -> Int32 {
        var problem: String?
        if triesFormats { do { try ImagingRuntime.start() } catch { problem = error.message } }
        let formats = triesFormats ? ImagingRuntime.supportedFormats() : (decode: [], encode: [])
        return printed(
            HelperDescription(
                coder: extensions.coders.version,
                libraries: ImagingRuntime.versions.map { "\($0.name) \($0.version)" },
                coders: extensions.coders.listing.map { "\($0.name) (\($0.version))" },
                reads: formats.decode.map(\.rawValue), writes: formats.encode.map(\.rawValue), problem: problem))
            ? 0 : 70
    }

    /// - Returns: whether the report could be written.
    private static func printed(_ report: some Encodable) -> Bool {
        do {
            _ = try FileDescriptor.standardOutput.writeAll(JSONEncoder().encode(report) + Array("\n".utf8))
            return true
        } catch {
            complain("helper \(getpid()): the report can't be written: \(error)")
            return false
        }
    }

    /// Tries every forbidden action on itself, and prints a `SandboxReport` as JSON.
    ///
    /// - Returns: the exit code; 0 if all actions were refused.
    public static func testSandbox() -> Int32 {
        let report = SandboxReport.make()
        return printed(report) && report.protections.isComplete && report.leaks.isEmpty ? 0 : 70
    }
}

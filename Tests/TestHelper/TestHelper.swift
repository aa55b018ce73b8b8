import Glibc
import Imaging
import PrefetchWorker

/// A helper with transforms that misbehave, for tests.
@main
struct TestHelper {
    @MainActor static func main() {
        HelperMain.runIfHelper(ImagingExtensions(transforms: [Crash(), Refusal()]))
    }
}

struct Crash: ImageTransform {
    let name = "crash"
    let version = "1"

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage { abort() }
}

struct Refusal: ImageTransform {
    let name = "refusal"
    let version = "1"

    struct No: Error, CustomStringConvertible { let description: String }

    func transform(_ image: RGBAImage, argument: String) throws -> RGBAImage {
        throw No(description: "no \(argument) today")
    }
}

/// How many helper processes run, how they are started, and their limits.
public struct HelperConfiguration: Sendable {
    /// Number of helpers at once; one for each core was fastest when measured.
    public var count: Int
    /// The program, and the arguments that make it a helper: by default this process's own program, for one that calls
    /// `HelperMain.runIfHelper(_:)`.
    public var executable: String
    public var arguments: [String]
    /// CPU seconds for one image, enforced by the kernel.
    public var processorSeconds: Int = 30
    /// Wall-clock seconds for one image; after that its helper is killed.
    public var wallSeconds: Int = 60
    /// Images after which a helper is replaced by a fresh one, to limit memory leaks of decoders.
    public var recycleAfterImages: Int = 10_000
    /// Bytes of memory held between two images above which a helper is replaced too.
    public var recycleAboveBytes: Int = 512 << 20
    /// Memory limit for all decoders together that cannot stream, such as progressive JPEGs: estimated before decoding.
    /// A picture waits until enough of it is free.
    public var decoderBytes: Int = 768 << 20
    /// Maximum bytes of memory for the variants of one picture; each helper may use this much at the same time. In a
    /// cache with a limit, variants are written to memory until space is reserved for them.
    public var outputBytes: Int = 32 << 20
    /// Give no image to a helper unless both Landlock and the system call filter protect it.
    public var requiresSandbox = false

    public init(count: Int, executable: String = "/proc/self/exe", arguments: [String] = ["helper"]) {
        self.count = count
        self.executable = executable
        self.arguments = arguments
    }
}

/// How helper processes are started and bounded.
public struct HelperConfiguration: Sendable {
    /// How many run at once; one for each core is what was measured to be fastest.
    public var count: Int
    /// The program, and the arguments that make it call `HelperMain.run(_:)`.
    public var executable: String
    public var arguments: [String]
    /// CPU seconds for one image, enforced by the kernel.
    public var processorSeconds: Int = 30
    /// Wall-clock seconds for one image, after which its helper is killed.
    public var wallSeconds: Int = 60
    /// Images after which a helper is replaced by a fresh one: whatever a decoder leaks stays small.
    public var recycleAfterImages: Int = 10_000
    /// Bytes of a helper's own memory, between two images, above which it is replaced as well.
    public var recycleAboveBytes: Int = 512 << 20
    /// Bytes that all helpers' decoders together may hold of pictures they can't take row by row, such as progressive
    /// JPEGs: estimated before decoding; who would pass it waits.
    public var decoderBytes: Int = 768 << 20
    /// Bytes that the variants of one picture may take of memory, in each helper at once: where the cache has a limit they
    /// are written there until room is set aside for them.
    public var outputBytes: Int = 32 << 20
    /// Give no image to a helper that Landlock and a filter of system calls don't both guard.
    public var requiresSandbox = false

    public init(count: Int, executable: String = "/proc/self/exe", arguments: [String] = ["helper"]) {
        self.count = count
        self.executable = executable
        self.arguments = arguments
    }
}

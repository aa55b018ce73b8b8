import Foundation
import Synchronization
import TestSupport
import Testing

@testable import ImageFiles
@testable import Imaging

/// Damaged files, thousands of them, in real helpers: none dies of one, and each ends done or in a class.
///
/// 20,000 mutations, the same each time, take a minute; `MUTATIONS=n` in the environment makes more or fewer, and
/// `MUTATION_SEED=n` others.
@Suite(.serialized, .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct MutationTests {
    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap { Int($0) } }
    static let count = number("MUTATIONS") ?? 20_000
    static let seed = UInt64(number("MUTATION_SEED") ?? 1)

    struct Seed: Sendable {
        let name: String
        let bytes: [UInt8]
        /// Bytes at the end without which all pixels are there.
        var spare = 0
        /// An animation that is cut between two frames is a shorter one.
        var canEndEarly = false
    }

    /// How many have ended how.
    private final class Ends: Sendable {
        private let state = Mutex<[String: Int]>([:])

        var counts: [String: Int] { state.withLock { $0 } }

        func add(_ end: String) { state.withLock { $0[end, default: 0] += 1 } }
    }

    private static func seeds() async throws -> [Seed] {
        let picture = TestImages.png(40, 30) { x, y in (UInt8(x * 6), UInt8(y * 8), UInt8(x * y & 255), 255) }
        let film = TestImages.gif(24, 18, frames: [10, 90, 200])
        return try await PictureHelper.lend { helper in
            var seeds = [
                Seed(name: "gif", bytes: SampleImage.bytes(of: .gif), spare: 2),
                Seed(name: "animated gif", bytes: film, spare: 2, canEndEarly: true),
                Seed(name: "palette", bytes: TestImages.png(9, 9, kind: .indexedWithAlpha), spare: 16),
                Seed(name: "16 bits", bytes: TestImages.png(9, 9, kind: .rgba16), spare: 16),
                Seed(name: "bmp", bytes: TestImages.bmp(20, 15)),
                Seed(name: "qoi", bytes: TestImages.qoi(20, 15), spare: 8),
                Seed(name: "heic", bytes: SampleImage.bytes(of: .heic), spare: 1),
            ]
            let encoded = [
                ("jpeg", 2), ("jpeg,progressive", 2), ("png", 16), ("png,progressive", 16), ("webp", 1),
                ("webp,lossless", 1), ("tiff", 0), ("avif", 1), ("jxl", 1),
            ]
            for (spec, spare) in encoded {
                let answer = try await helper.make(picture, "a=39x,\(spec)")
                seeds.append(Seed(name: spec, bytes: try #require(answer.files.first), spare: spare))
            }
            let webp = try await helper.make(film, "a=24x,webp")
            seeds.append(Seed(name: "animated webp", bytes: try #require(webp.files.first), spare: 1))
            return seeds
        }
    }

    @Test func noMutatedFileKillsAHelper() async throws {
        let seeds = try await Self.seeds()
        let ends = Ends()
        async let even: Void = Self.run(0, seeds, ends)
        async let odd: Void = Self.run(1, seeds, ends)
        _ = try await (even, odd)
        let counts = ends.counts
        print("mutations: \(counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "))")
        #expect(counts.values.reduce(0, +) == Self.count / 2 * 2)
    }

    /// Every second mutation. A helper that dies is replaced, once it is written down what it died of.
    private static func run(_ part: Int, _ seeds: [Seed], _ ends: Ends) async throws {
        var next = part
        while next < count / 2 * 2 {
            let start = next
            next = try await PictureHelper.lend(limits: ImageLimits(pixels: 4_000_000, animationPixels: 8_000_000)) {
                helper in
                for index in stride(from: start, to: count / 2 * 2, by: 2) {
                    let seed = seeds[index / 2 % seeds.count]
                    var random = SeededGenerator(seed: Self.seed << 32 | UInt64(index))
                    let mutation = Mutation(of: seed.bytes, &random)
                    let answer = try await helper.make(mutation.bytes, "a=20x,webp b=10x10", within: 20)
                    ends.add(answer.end)
                    let what = "\(seed.name), mutation \(index): \(answer)"
                    #expect(answer.seconds < 20 && answer.peak < 1_024, "\(what)")
                    if mutation.isCut, answer.isDone {
                        let missing = seed.bytes.count - mutation.bytes.count
                        #expect(missing <= seed.spare || seed.canEndEarly, "\(what), without \(missing) bytes")
                    }
                    guard answer.isOrderly else {
                        Issue.record("\(what)\n\(Data(mutation.bytes).base64EncodedString())")
                        return index + 2
                    }
                }
                return count
            }
        }
    }
}

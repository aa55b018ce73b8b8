import TestSupport
import Testing

/// Previews of pictures that are still arriving.
@Suite(.timeLimit(.minutes(15))) struct ProgressiveTests {
    @Test func aSlowPictureHasAPreviewBeforeItsDownloadEnds() async throws {
        try await withWorker { w in
            try await w.enqueue(
                w.url("/1.png"), "--variant", "v=900x,enlarge,webp,lossless", "--option", "discard-original")
            try await w.drain()
            let webP = try w.bytes(of: try await w.path(w.url("/1.png"), variant: "v"))
            let slow = try LoopbackOrigin { _ in .slowly(webP, pieces: 12, pause: 300) }
            defer { slow.stop() }
            let folder = w.place("previews")
            try await w.enqueue(slow.url("/slow.webp"), "--option", "progressive")
            try await w.enqueue(slow.url("/unwatched.webp"))
            let run = try w.start("--drain", "--quiet", "--previews", folder)
            try await w.eventually("a preview is there") { fileNames(in: folder).contains { $0.hasSuffix(".webp") } }
            #expect(try await run.wait() == .code(0))
            #expect(try await w.counts("2") == "1|0|0|0|0")
            // Only the job that says so is watched, and a watched picture ends like any other.
            #expect(fileNames(in: folder).count == 1)
            #expect(try w.bytes(of: try await w.path(slow.url("/slow.webp"))) == webP)
        }
    }

    @Test(arguments: ["jpeg", "png", "png,progressive", "gif"])
    func aPictureThatArrivesFromTheTopHasAPreview(format: String) async throws {
        try await withWorker({ _ in .ok(Scene.png(1)) }) { w in
            try await w.enqueue(w.url("/1.png"), "--variant", "v=900x,enlarge,\(format)")
            try await w.drain()
            let file = try w.bytes(of: try await w.path(w.url("/1.png"), variant: "v"))
            let slow = try LoopbackOrigin { _ in .slowly(file, pieces: 12, pause: 300) }
            defer { slow.stop() }
            let folder = w.place("previews")
            try await w.enqueue(slow.url("/slow"), "--option", "progressive")
            let run = try w.start("--drain", "--quiet", "--previews", folder)
            try await w.eventually("a preview is there") { fileNames(in: folder).contains { $0.hasSuffix(".webp") } }
            #expect(try await run.wait() == .code(0))
            #expect(try await w.counts("2") == "1|0|0|0|0")
        }
    }
}

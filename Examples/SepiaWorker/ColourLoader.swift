import Core
import PrefetchWorker

/// Serves `colour:RRGGBB` as a farbfeld of that colour, so that a page's background is cached like its pictures.
struct ColourLoader: ImageLoader {
    func canLoad(_ url: String) -> Bool { url.hasPrefix("colour:") }

    func load(_ request: LoaderRequest, into body: any LoaderBody) async throws -> LoaderResponse {
        guard let colour = UInt32(request.url.dropFirst("colour:".count), radix: 16), colour <= 0xFF_FFFF else {
            throw Failure(.invalidURL, "A colour is six hexadecimal digits.")
        }
        let parts = [16, 8, 0].map { UInt8(truncatingIfNeeded: colour >> $0) } + [0xFF]
        let pixels = [UInt8]((0..<16).flatMap { _ in parts.flatMap { [$0, $0] } })
        try body.expect(Int64(16 + pixels.count))
        try await body.write(Array("farbfeld".utf8) + [0, 0, 0, 4, 0, 0, 0, 4])
        try await body.write(pixels)
        return LoaderResponse(contentType: "image/x-farbfeld", etag: request.url)
    }
}

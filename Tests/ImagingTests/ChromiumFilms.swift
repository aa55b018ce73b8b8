import Synchronization
import TestSupport

@testable import ImageFiles
@testable import Imaging

/// Animations as Chromium decodes them (WebCodecs): frames with straight alpha and unconverted colours.
enum ChromiumFilms {
    private static let mediaTypes: [ImageFormat: String] = [
        .gif: "image/gif", .png: "image/png", .webp: "image/webp", .avif: "image/avif", .jxl: "image/jxl",
    ]

    private static let page = """
        <!doctype html><title>Frames</title><script>
        async function frames(number) {
            const reply = await fetch('/file/' + number);
            const type = reply.headers.get('Content-Type');
            if (!await ImageDecoder.isTypeSupported(type)) return fetch(`/unknown?${number}`);
            const decoder = new ImageDecoder({
                type, data: await reply.arrayBuffer(), premultiplyAlpha: 'none', colorSpaceConversion: 'none' });
            await decoder.completed;
            await decoder.tracks.ready;
            const track = decoder.tracks.selectedTrack;
            const plays = track.repetitionCount === Infinity ? 0 : track.repetitionCount + 1;
            for (let frameIndex = 0; frameIndex < track.frameCount; frameIndex++) {
                const { image } = await decoder.decode({ frameIndex });
                const pixels = new Uint8Array(image.allocationSize({ format: 'RGBA' }));
                await image.copyTo(pixels, { format: 'RGBA' });
                const text = Array.from(pixels, byte => byte.toString(16).padStart(2, '0')).join('');
                const size = image.displayWidth + '&' + image.displayHeight;
                await fetch(`/frame?${number}&${plays}&${image.duration}&${size}&${text}`);
            }
        }
        async function all() {
            const count = Number(await (await fetch('/count')).text());
            for (let number = 0; number < count; number++) {
                await frames(number).catch(error => fetch(`/error?${number}&${encodeURIComponent(error)}`));
            }
            await fetch('/end');
        }
        all();
        </script>
        """

    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    /// - Returns: for each file what Chromium shows; nil where it does not know the format.
    static func films(_ files: [[UInt8]]) async throws -> [Film?] {
        let types = try files.map { file in
            guard let format = file.withUnsafeBytes({ ImageFormat.sniff($0) }), let type = mediaTypes[format] else {
                throw Refused(description: "A file is none of the formats that can be animated.")
            }
            return type
        }
        let origin = try LoopbackOrigin { request in
            switch request.path {
            case "/": .ok(Array(page.utf8), type: "text/html")
            case "/count": .ok(Array("\(files.count)".utf8), type: "text/plain")
            case let path where path.hasPrefix("/file/"):
                Int(path.dropFirst(6)).map { .ok(files[$0], type: types[$0]) } ?? .status(404)
            default: .status(204)
            }
        }
        defer { origin.stop() }
        try await Chromium.open(origin.url("/")) { origin.requestCount("/end") > 0 }
        var films = [Film?](repeating: nil, count: files.count)
        for request in origin.requests {
            let parts = request.path.split(separator: "?", maxSplits: 1)
            if parts.first == "/error" { throw Refused(description: "\(parts[1])") }
            guard parts.count == 2, parts[0] == "/frame" else { continue }
            try add(parts[1].split(separator: "&"), to: &films)
        }
        guard origin.requestCount("/end") > 0 else { throw Refused(description: "Chromium did not come to an end.") }
        return films
    }

    private static func add(_ fields: [Substring], to films: inout [Film?]) throws {
        let numbers = fields.prefix(5).compactMap { Int($0) }
        guard numbers.count == 5, fields.count == 6 else { throw Refused(description: "\(fields.prefix(5))") }
        let size = PixelSize(width: numbers[3], height: numbers[4])
        var film = films[numbers[0]] ?? Film(size: size, loopCount: numbers[1])
        // In microseconds.
        film.durations.append(numbers[2] / 1_000)
        film.frames.append(Film.visible(bytes(fields[5])))
        films[numbers[0]] = film
    }

    private static func bytes(_ text: Substring) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count / 2)
        var high: UInt8?
        for digit in text.utf8 {
            let value = digit < 0x3A ? digit - 0x30 : digit - 0x57
            if let first = high { bytes.append(first << 4 | value) }
            high = high == nil ? value : nil
        }
        return bytes
    }
}

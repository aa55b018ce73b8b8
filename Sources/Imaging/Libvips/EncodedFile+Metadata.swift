internal import CVips

/// What libvips 8.14 leaves out of TIFF and JPEG XL, put into the file that it has made, and what a PNG has too much.
extension EncodedFile {
    /// - Parameter picture: as it was encoded, with the metadata that may be written.
    func withMetadata(of picture: Picture, _ format: VariantSpec.Output) -> EncodedFile {
        let exif = picture.exifBlock
        switch format {
        case .tiff: return exif.flatMap(tiff) ?? self
        case .jxl:
            let xmp = picture.withBlob(VIPS_META_XMP_NAME) { Array($0) }
            return exif == nil && xmp == nil ? self : jxl(exif?.bytes, xmp)
        case .png: return exif == nil ? self : withOneExif
        case .jpeg, .webp, .avif, .gif: return self
        }
    }

    /// libpng writes EXIF before the pixels and once more behind them, and the standard allows it once.
    private var withOneExif: EncodedFile {
        lend { file in
            let reader = ByteReader(file)
            let end = 12
            var place = 8
            while let length = reader.big(4, at: place), !reader.has("IDAT", at: place + 4) {
                let again = file.count - end - length - 12
                if reader.has("eXIf", at: place + 4), again > place, reader.has("eXIf", at: again + 4) {
                    return EncodedFile(self, last: end + length + 12, tail: Array(file.suffix(end)))
                }
                place += length + 12
            }
            return self
        }
    }

    /// The main directory is written anew behind the file, with the tags it had and ours.
    private func tiff(with exif: ExifBlock) -> EncodedFile? {
        lend { file in
            let reader = ByteReader(file)
            guard reader.has([0x49, 0x49, 0x2A, 0], at: 0), let old = reader.little(4, at: 4),
                let count = reader.little(2, at: old), reader.contains(old, length: 2 + 12 * count)
            else { return nil }
            let present = (0..<count).map { index in
                let line = Array(file[(old + 2 + 12 * index)..<(old + 14 + 12 * index)])
                return (tag: UInt16(line[0]) | UInt16(line[1]) << 8, bytes: line)
            }
            // Directories begin at even places.
            let padding = [UInt8](repeating: 0, count: file.count & 1)
            guard let place = UInt32(exactly: file.count + padding.count) else { return nil }
            return EncodedFile(
                self, replacingFirst: 8, by: Array(file[..<4]) + withUnsafeBytes(of: place.littleEndian) { Array($0) },
                tail: padding + exif.directory(at: Int(place), with: present))
        }
    }

    /// ISO/IEC 18181-2: a signature, the file type, and boxes around the codestream, of which EXIF's begins with the
    /// place of its header.
    private func jxl(_ exif: [UInt8]?, _ xmp: [UInt8]?) -> EncodedFile {
        let boxes =
            (exif.map { Self.box("Exif", [0, 0, 0, 0] + $0) } ?? []) + (xmp.map { Self.box("xml ", $0) } ?? [])
        // A file that has boxes already takes more at its end.
        guard lend({ ByteReader($0).has([0xFF, 0x0A], at: 0) }) else { return EncodedFile(self, by: [], tail: boxes) }
        let signature = Self.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
        let type = Self.box("ftyp", Array("jxl ".utf8) + [0, 0, 0, 0] + Array("jxl ".utf8))
        return EncodedFile(self, by: signature + type + boxes + Self.boxHeader("jxlc", count))
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        boxHeader(name, content.count) + content
    }

    private static func boxHeader(_ name: String, _ count: Int) -> [UInt8] {
        withUnsafeBytes(of: UInt32(8 + count).bigEndian) { Array($0) } + Array(name.utf8)
    }
}

extension Picture {
    /// Its EXIF block, without those of ``CopyrightBlock/tags`` that were taken off the picture.
    fileprivate var exifBlock: ExifBlock? {
        let gone = Set(CopyrightBlock.tags.filter { text($0.name) == nil }.map(\.tag))
        return withBlob(VIPS_META_EXIF_NAME) { ExifBlock($0) { !gone.contains($0) } } ?? nil
    }
}

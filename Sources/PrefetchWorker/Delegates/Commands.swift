internal import ContentCache
internal import Core
internal import ImageFiles
internal import Jobs
internal import SystemPackage

/// Runs the programs that variants name, as many at once as there are helpers.
final class Commands: Sendable {
    let installed: [InstalledCommand]
    private let limits: CommandLimits
    private let scratch: ScratchFiles
    private let files = BlockingQueue("commands.files", width: 2)
    private let slots: AsyncSemaphore
    let turns: ProcessTurns

    init(_ installed: [InstalledCommand], limits: CommandLimits, width: Int, scratch: ScratchFiles) {
        self.installed = installed
        self.limits = limits
        self.scratch = scratch
        slots = AsyncSemaphore(width)
        turns = ProcessTurns(.command, slots: width)
    }

    /// - Parameter picture: a PNG of `width` × `height` pixels.
    /// - Returns: the command's picture, as untrusted as any download.
    func run(
        _ wanted: StagedVariant.Command, on picture: BlobFile, width: Int, height: Int,
    ) async throws(Failure) -> BlobFile {
        guard let command = installed.first(where: { $0.name == wanted.name }) else {
            throw Failure(.delegate, "There is no command '\(wanted.name)'.")
        }
        let request = CommandRequest(name: wanted.name, argument: wanted.argument, width: width, height: height)
        await turns.waiting { await slots.enter() }
        defer { slots.leave() }
        if Task.isCancelled { throw .stopped() }
        let input = try await written { file in
            try file.writeAll(request.line())
            try Self.copy(picture.descriptor, to: file)
        }
        let bytes = try await CommandRun(command: command, limits: limits).run(input)
        return try await written { try $0.writeAll(bytes) }
    }

    /// Writes an unnamed file, and opens it again for reading only, from its start.
    private func written(
        _ write: @escaping @Sendable (FileDescriptor) throws -> Void,
    ) async throws(Failure) -> BlobFile {
        let result = await files.run { [scratch] in
            Result {
                let file = try scratch.make()
                try write(file.descriptor)
                return try file.openedForReading()
            }
        }
        do {
            return try result.get()
        } catch {
            throw Failure(.diskError, "A file for a command can't be written: \(error)")
        }
    }

    private static func copy(_ source: FileDescriptor, to target: FileDescriptor) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while case let count = try source.read(fromAbsoluteOffset: offset, into: buffer), count > 0 {
            try target.writeAll(buffer[..<count])
            offset += Int64(count)
        }
    }
}

extension BlobFile {
    /// The same file, open for reading only, so that a helper or a command cannot change a file of the cache.
    func openedForReading() throws(CacheError) -> BlobFile {
        do {
            return BlobFile(owning: try descriptor.openedForReading())
        } catch {
            throw CacheError(.disk, "A file in the cache can't be opened for reading: \(error)")
        }
    }
}

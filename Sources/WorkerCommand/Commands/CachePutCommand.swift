import ArgumentParser
import Core
import Jobs
import PrefetchWorker
import SystemPackage

struct CachePutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Stores a picture by hand, as the source of a URL or as one of its variants.",
        discussion: """
            Prints the path of the cached file. The picture is checked like one that was downloaded: its signature, the \
            limits, and in a confined process all of its pixels. It replaces the earlier picture of the URL. Jobs then find \
            it in the cache and make no request. Workers may run meanwhile.

            --variant stores it as a variant. With a name alone (thumb), it replaces the file that 'worker get' finds under \
            that name. With a whole variant (thumb=320x240,webp), jobs with the same variant use it too.

            If the picture is refused, the exit code is 2, and the message has the failure class that a download of the same bytes \
            would have.

            EXAMPLES:
              worker cache put https://example.com/a.jpg photo.jpg
              produce-picture | worker cache put https://example.com/a.jpg -
              worker cache put https://example.com/a.jpg thumb.webp --variant thumb
              worker cache put https://example.com/a.jpg thumb.webp --variant 'thumb=320x240,webp'
            """,
    )
    @OptionGroup var common: CommonOptions
    @Argument(help: "The URL, as jobs name it.") var url: String
    @Argument(help: "The picture's file; - for standard input.") var file: String
    @Option(help: ArgumentHelp("A variant's name, or a whole variant.", valueName: "name|spec")) var variant: String?
    @Flag(help: "Print JSON.") var json = false
    @OptionGroup var writer: WriterOptions
    @Option(ProgramSettings.assets) var assets: String?
    @Option(ProgramSettings.transformCommand) var transformCommand: [String] = []

    func run() async throws {
        try await reportingErrors {
            let settings = try common.settings()
            var configuration = try writer.configuration(common, helpers: 1)
            configuration.assets = try settings.optional(ProgramSettings.assets, assets)
            configuration.commands = try settings.list(ProgramSettings.transformCommand, transformCommand)
                .map { try TransformCommand(parsing: $0) }
            var picture =
                file == "-" ? NewPicture(reading: .standardInput, url: url) : NewPicture(path: file, url: url)
            picture.variant = variant
            let result = try await common.withCache { [configuration, picture] store, cache in
                try await CacheWriter.run(configuration, store: store, cache: cache, logger: CacheCommand.logger) {
                    try await $0.put(picture)
                }
            }
            switch result {
            case .success(var picture):
                picture.url = try common.redaction().shown(picture.url)
                Terminal.print(json ? try Output.json(picture) : picture.path)
            case .failure(let failure):
                let isMistake = [.invalidURL, .invalidItem].contains(failure.failureClass)
                Terminal.error("worker: \(isMistake ? Terminal.safe(failure.message) : failure.shown)")
                throw isMistake ? ExitCode.usage : ExitCode.someFailed
            }
        }
    }
}

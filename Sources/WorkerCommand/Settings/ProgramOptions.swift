import ArgumentParser
import ImageFiles
import PrefetchWorker
import SystemPackage

enum ProgramSettings {
    static let assets = Setting.text(
        "assets", nil, "folder", "Folder of the pictures that effects name, such as watermarks.")
    static let previews = Setting.text(
        "previews", nil, "folder",
        "Folder for previews of pictures that are still arriving, of jobs with the option progressive.")
    static let lists = Setting.text(
        "lists", nil, "folder", "Folder of the list files that schedules may read; without it, they may read none."
    )
    static let transformCommand = Setting.text(
        "transform-command", nil, "name=path[@version]",
        "A program that variants may name as command:NAME; repeatable. Without a version, the hash of the program's file is the version."
    )
    static let commandTimeout = Setting.time(
        "command-timeout", "30s", "Time of one command for one picture.", in: 1...Int64.max)
    static let commandOutput = Setting.bytes(
        "command-output", "64MiB", "Maximum bytes that a command may print.", atLeast: 1)
    static let delegateCommand = Setting.text(
        "delegate-command", nil, "path:hook+hook",
        "Delegate program and the hooks it handles: options, allow, request, cache-key, response, bytes, blacklist.")
    static let notifyCommand = Setting.text(
        "notify-command", nil, "path",
        "A program that gets a notice on its standard input when a job with the notify 'command' has ended.")
    static let notifySecretFile = Setting.text(
        "notify-secret-file", nil, "file", "A file with the secret that signs notices of ended jobs.")
    static let all: [any NamedSetting] = [
        assets, previews, lists, transformCommand, commandTimeout, commandOutput, delegateCommand, notifyCommand,
        notifySecretFile,
    ]
}

/// The programs that variants and hooks may use, and the folders of their pictures.
struct ProgramOptions: ParsableArguments {
    @Option(ProgramSettings.assets) var assets: String?
    @Option(ProgramSettings.previews) var previews: String?
    @Option(ProgramSettings.lists) var lists: String?
    @Option(ProgramSettings.transformCommand) var transformCommand: [String] = []
    @Option(ProgramSettings.commandTimeout) var commandTimeout: Int64?
    @Option(ProgramSettings.commandOutput) var commandOutput: Int64?
    @Option(ProgramSettings.delegateCommand) var delegateCommand: String?
    @Option(ProgramSettings.notifyCommand) var notifyCommand: String?
    @Option(ProgramSettings.notifySecretFile) var notifySecretFile: String?

    func apply(to configuration: inout WorkerConfiguration, _ settings: Settings) throws {
        configuration.assets = try settings.optional(ProgramSettings.assets, assets).map(Self.assetsFolder)
        configuration.onPreview = try settings.optional(ProgramSettings.previews, previews).map(Self.previewWriter)
        var names: Set<String> = []
        for text in try settings.list(ProgramSettings.transformCommand, transformCommand) {
            let command = try TransformCommand(parsing: text)
            guard names.insert(command.name).inserted else {
                throw SettingsError("transform-command names '\(command.name)' twice.")
            }
            configuration.commands.append(command)
        }
        configuration.delegateCommand = try settings.optional(ProgramSettings.delegateCommand, delegateCommand).map {
            try DelegateCommand(parsing: $0)
        }
        configuration.notices.command = try settings.optional(ProgramSettings.notifyCommand, notifyCommand)
        configuration.notices.secret = try settings.optional(ProgramSettings.notifySecretFile, notifySecretFile).map {
            try NoticeSecret(text: InputFile.text($0, as: "secret of notices"))
        }
        configuration.commandLimits.bytes = Int(try settings.value(ProgramSettings.commandOutput, commandOutput))
        configuration.commandLimits.time = .milliseconds(
            try settings.value(ProgramSettings.commandTimeout, commandTimeout))
        configuration.notices.commandTime = configuration.commandLimits.time
    }

    /// Checks the folder at the start: without it each item that names a picture would fail, one by one.
    private static func assetsFolder(_ path: String) throws -> String {
        do {
            try FileDescriptor.open(FilePath(path), .readOnly, options: [.directory, .closeOnExec]).close()
        } catch {
            throw SettingsError("assets: the folder \(path) can't be opened: \(error)")
        }
        return path
    }

    private static func previewWriter(_ path: String) throws -> @Sendable (Preview) throws -> Void {
        let folder: PreviewFolder
        do {
            folder = try PreviewFolder(path)
        } catch {
            throw SettingsError("previews: the folder \(path) can't be made: \(error)")
        }
        return { preview in try folder.show(preview) }
    }
}

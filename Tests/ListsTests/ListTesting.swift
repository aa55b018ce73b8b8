import SystemPackage
import TestSupport

@testable import Lists

/// What came of a list.
struct ReadList {
    var format: ListFormat?
    var doubt: String?
    var entries: [ListEntry] = []
    var nested: [String] = []
    var mistakes: [String] = []
    var warnings: [String] = []
    /// Why the list as a whole could not be read.
    var error: String?

    var urls: [String] { entries.map(\.url) }
    var metas: [String?] { entries.map { ListMember.object($0.meta) } }

    init(_ text: String, name: String = "list", limit: Int64? = nil, _ change: (inout ListRequest) -> Void = { _ in })
        throws
    {
        try self.init(Array(text.utf8), name: name, limit: limit, change)
    }

    /// Reads the bytes from a file, as the command does.
    init(
        _ bytes: [UInt8], name: String = "list", limit: Int64? = nil, _ change: (inout ListRequest) -> Void = { _ in },
    ) throws {
        var request = ListRequest(name: name)
        change(&request)
        self = try withTemporaryDirectory { folder in
            let path = folder.appending("list")
            let file = try FileDescriptor.open(
                path, .readWrite, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
            return try file.closeAfter {
                _ = try file.writeAll(bytes)
                try file.seek(offset: 0, from: .start)
                return ReadList(ListInput(file, name: name, limit: limit), request)
            }
        }
    }

    private init(_ input: ListInput, _ request: ListRequest) {
        var list = ReadList()
        do {
            var events: [ListEvent] = []
            defer { list.take(events) }
            try ListReader.read(input, request, onFormat: { (list.format, list.doubt) = ($0, $1) }) {
                events.append($0)
            }
        } catch {
            list.error = "\(error)"
        }
        self = list
    }

    private init() {}

    private mutating func take(_ events: [ListEvent]) {
        for event in events {
            switch event {
            case .entry(let entry): entries.append(entry)
            case .nested(let url, _): nested.append(url)
            case .mistake(let mistake): mistakes.append("\(mistake)")
            case .warning(let mistake): warnings.append("\(mistake)")
            }
        }
    }
}

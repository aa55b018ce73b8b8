import PrefetchWorker
import Testing

/// A host is the same host in every spelling.
@Suite struct HostNamesTests {
    static let names = [
        ("Images.Example.COM", "images.example.com"), ("example.com.", "example.com"), ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"), ("::1", "::1"), ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
    ]

    @Test(arguments: names) func `A typed host and the host of a URL have the same name`(
        _ typed: String, _ name: String
    ) throws {
        #expect(try HostNames.parse(typed) == name)
        let bracketed = typed.contains("::") && !typed.hasPrefix("[") ? "[\(typed)]" : typed
        #expect(HostNames.name(ofURL: "https://me:secret@\(bracketed):8443/a.jpg?b#c") == name)
    }

    @Test(arguments: ["", "https://example.com", "example.com:80", "example.com/a", "a@b", "[", "a b", "?"])
    func `An invalid host name is refused`(_ text: String) {
        let error = #expect(throws: WorkerError.self) { try HostNames.parse(text) }
        #expect(error?.code == .usage)
    }
}

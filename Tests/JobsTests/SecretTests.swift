import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import Jobs

/// Secrets are in no file that all users can read, and URLs are shown without them.
@Suite("Secrets", .serialized, .timeLimit(.minutes(15)), .onSQLite)
struct SecretTests {
    static let urls = [
        ("https://a.example/x.jpg", "https://a.example/x.jpg"),
        ("https://ann:pass@a.example/x?w=3", "https://a.example/x?w=3"),
        (
            "https://b.s3.amazonaws.com/x?X-Amz-Date=1&X-Amz-Signature=abc&X-Amz-Expires=9",
            "https://b.s3.amazonaws.com/x?X-Amz-Date=1&X-Amz-Signature=***&X-Amz-Expires=9"
        ),
        (
            "https://c.example/x?Expires=1&Signature=a/b==&Key-Pair-Id=K&Policy=p",
            "https://c.example/x?Expires=1&Signature=***&Key-Pair-Id=***&Policy=***"
        ),
        ("https://d.example/x?sv=1&sig=a%2Fb&se=2#sig=x", "https://d.example/x?sv=1&sig=***&se=2#sig=***"),
        ("https://e.example/?TOKEN=1;key=2;w=3", "https://e.example/?TOKEN=***;key=***;w=3"),
        ("https://f.example/?%74oken=1&to%6Ben=2", "https://f.example/?%74oken=***&to%6Ben=***"),
        ("https://g.example/?keyboard=1&token&=2&key=", "https://g.example/?keyboard=1&token&=2&key=***"),
        ("https://h.example/?ours=1", "https://h.example/?ours=***"),
        ("https://j.example/a;sig=1;w=2/b", "https://j.example/a;sig=***;w=2/b"),
        (
            "https://k.example/resize?w=3&url=https%3A%2F%2Fh%2Fa%3Fsig%3DX%26b%3D1&q=4",
            "https://k.example/resize?w=3&url=***&q=4"
        ),
        (
            "https://k.example/resize?url=https%3A%2F%2Fh%2Fa%3Fw%3D1",
            "https://k.example/resize?url=https%3A%2F%2Fh%2Fa%3Fw%3D1"
        ),
        ("?", "?"), ("", ""), ("https://i.example/?a=%zz&sig=%", "https://i.example/?a=%zz&sig=***"),
    ]

    @Test(arguments: urls.indices) func `The signatures and passwords of a URL are hidden, and the rest is shown`(
        _ index: Int
    ) {
        let (url, shown) = Self.urls[index]
        #expect(Redaction(also: ["Ours"]).shown(url) == shown)
    }

    private func mode(of path: String) -> mode_t? {
        var info = stat()
        return stat(path, &info) == 0 ? info.st_mode & 0o777 : nil
    }

    @Test func `The database, its side files and a backup are readable by owner and group only`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            // The umask of a test is that of its machine, which lets all read.
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/?sig=1"]))
            let copy = folder.appending("copy.db").string
            try await store.maintenance.backUp(to: copy)
            for suffix in ["", "-wal", "-shm", ".lock"] {
                let bits = try #require(mode(of: path + suffix))
                #expect(bits & ~0o640 == 0, "\(suffix): \(String(bits, radix: 8))")
            }
            #expect((mode(of: copy) ?? 0o777) & ~0o640 == 0)
            try await store.close()
        }
    }
}

import Core
import Foundation
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

/// The hooks of a delegate, in Swift and as a command.
@Suite("Delegates of the download", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct DelegateHookTests {
    private struct Delegate: WorkerDelegate {
        struct Refusal: Error {}

        func allows(_ url: String, item: DelegatedItem) async throws -> Bool {
            if url.hasSuffix("/throws") { throw Refusal() }
            return !url.hasSuffix("/no")
        }

        func cacheKey(of url: String, item: DelegatedItem) async -> String? {
            url.replacingOccurrences(of: "session=", with: "")
        }

        func request(_ request: DelegatedRequest, item: DelegatedItem) async -> DelegatedRequest {
            var request = request
            request.headers = ["X-Added": "1"]
            request.url += "?signed=1"
            return request
        }

        func status(of response: DelegatedResponse, item: DelegatedItem) async -> Int {
            response.url.hasSuffix("/gone") ? 404 : response.status
        }

        func blacklists(_ url: String, for failure: FailureClass) async -> Bool? {
            url.hasSuffix("/gone") ? false : nil
        }
    }

    @Test func `A delegate is asked at each step, and its answers are obeyed`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.delegate = Delegate() }) { place in
            let urls = ["/a", "/no", "/throws", "/gone"].map { origin.url($0) }
            let job = try await place.enqueue(urls)
            try await place.drain()
            let results = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(results.map(\.failure) == [nil, "denied", "delegate", "http-404"])
            #expect(origin.requests.map(\.path).sorted() == ["/a?signed=1", "/gone?signed=1"])
            #expect(origin.requests.allSatisfy { $0.header("X-Added") == "1" })
            #expect(try await place.store.blacklist.entries() == [])
            // The refusal fails that item only, and the key is what it says.
            let again = try await place.enqueue([origin.url("/a")])
            try await place.drain()
            #expect(try await place.progress(again).cached == 1)
        }
    }

    @Test func `An invalid header of a delegate fails the item with class delegate, without a retry`() async throws {
        struct Smuggler: WorkerDelegate {
            func request(_ request: DelegatedRequest, item: DelegatedItem) async -> DelegatedRequest {
                DelegatedRequest(url: request.url, headers: ["X-Key": "1\r\nHost: evil"])
            }
        }
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.delegate = Smuggler() }) { place in
            let job = try await place.enqueue([origin.url("/a")])
            try await place.drain()
            let item = try await place.history(origin.url("/a"))
            #expect(try await place.progress(job).failed == 1)
            #expect(item.failure == "delegate")
            #expect(item.message?.hasPrefix("The header X-Key has a value that can't be sent") == true)
            #expect(item.attempts == 1)
            #expect(origin.requests.isEmpty)
            #expect(try await place.store.blacklist.entries() == [])
        }
    }

    /// The two hosts are loopback's two names.
    private struct Mover: WorkerDelegate {
        let hooks: Set<DelegateHook> = [.request]

        func request(_ request: DelegatedRequest, item: DelegatedItem) async -> DelegatedRequest {
            var request = request
            if !request.url.hasSuffix("/stays") {
                request.url = request.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
            }
            request.headers["X-Changed"] = "2"
            request.headers["X-Added"] = "1"
            request.keepsHeaders = request.url.hasSuffix("/keeps")
            return request
        }
    }

    private static let secrets = [
        "Authorization": "Bearer secret", "Cookie": "a=secret", "X-Key": "secret", "X-Changed": "1",
    ]

    private func headers(_ origin: LoopbackOrigin, _ path: String) -> [String] {
        let request = origin.requests.first { $0.path == path }
        let names = ["Authorization", "Cookie", "X-Added", "X-Changed", "X-Key"]
        return names.compactMap { name in request?.header(name).map { "\(name): \($0)" } }
    }

    @Test func `A job's headers aren't sent to another host that a delegate names`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.delegate = Mover() }) { place in
            let urls = ["/stays", "/moves", "/keeps"].map { origin.url($0) }
            _ = try await place.store.queue.enqueue(NewJob(urls: urls, headers: Self.secrets))
            try await place.drain()
            let all = [
                "Authorization: Bearer secret", "Cookie: a=secret", "X-Added: 1", "X-Changed: 2", "X-Key: secret",
            ]
            #expect(headers(origin, "/stays") == all)
            #expect(headers(origin, "/moves") == ["X-Added: 1", "X-Changed: 2"])
            #expect(headers(origin, "/keeps") == all)
        }
    }

    @Test func `A command's answer names the headers that are sent to another host`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withTemporaryDirectory { folder in
            let there = "\"url\":\"http://localhost:\(origin.port)"
            let path = try Self.command(
                folder,
                """
                case "$line" in
                */moves*) echo '{\(there)/moves"}' ;;
                */named*) echo '{\(there)/named","headers":{"X-Key":"secret"}}' ;;
                *) echo '{}' ;;
                esac
                """)
            try await withWorkplace(configure: {
                $0.delegateCommand = try? DelegateCommand(parsing: "\(path):request")
            }) { place in
                let urls = ["/moves", "/named", "/stays"].map { origin.url($0) }
                _ = try await place.store.queue.enqueue(NewJob(urls: urls, headers: ["X-Key": "secret"]))
                try await place.drain()
                #expect(headers(origin, "/moves") == [])
                #expect(headers(origin, "/named") == ["X-Key: secret"])
                #expect(headers(origin, "/stays") == ["X-Key: secret"])
            }
        }
    }

    @Test(arguments: [0, 99, 600, -1, .max]) func `An invalid status of a delegate fails the item with class delegate`(
        _ status: Int
    ) async throws {
        struct Judge: WorkerDelegate {
            let status: Int
            func status(of response: DelegatedResponse, item: DelegatedItem) async -> Int { status }
        }
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withWorkplace(configure: { $0.delegate = Judge(status: status) }) { place in
            _ = try await place.enqueue([origin.url("/a")])
            try await place.drain()
            #expect(try await place.history(origin.url("/a")).failure == "delegate")
        }
    }

    /// A shell script, which is a command like any other.
    static func command(_ folder: FilePath, _ script: String) throws -> String {
        let path = folder.appending("delegate").string
        try Data(("#!/bin/sh\nread -r line\n" + script + "\n").utf8).write(to: URL(filePath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        return path
    }

    @Test func `A delegate command answers the hooks in JSON`() async throws {
        let origin = try LoopbackOrigin { _ in .ok(Pictures.jpeg) }
        try await withTemporaryDirectory { folder in
            let path = try Self.command(
                folder,
                """
                case "$line" in
                *'"hook":"allow"'*/no\\"*) echo '{"allow":false}' ;;
                *'"hook":"allow"'*/error\\"*) echo '{"error":"not today"}' ;;
                *'"hook":"allow"'*/nonsense\\"*) echo nonsense ;;
                *'"hook":"request"'*) echo '{"headers":{"X-Added":"1"}}' ;;
                *'"hook":"cache-key"'*) echo '{"key":"one-for-all"}' ;;
                *'"hook":"response"'*/gone\\"*) echo '{"status":410}' ;;
                *'"hook":"bytes"'*) echo '{"ok":true}'; cat; printf tail ;;
                *'"hook":"blacklist"'*) echo '{"blacklist":false}' ;;
                *) echo '{}' ;;
                esac
                """.replacingOccurrences(of: "\\\\", with: "\\"))
            try await withWorkplace(configure: {
                $0.delegateCommand = try? DelegateCommand(parsing: "\(path):allow+request+response+bytes+blacklist")
            }) { place in
                let job = try await place.enqueue(
                    ["/a", "/no", "/error", "/nonsense", "/gone"].map { origin.url($0) })
                try await place.drain()
                let results = try await place.store.reports.results(job: job, after: 0, limit: 10)
                #expect(results.map(\.failure) == [nil, "denied", "delegate", "delegate", "http-410"])
                #expect(results[2].message?.contains("not today") == true)
                #expect(origin.requests.allSatisfy { $0.header("X-Added") == "1" })
                #expect(try await place.store.blacklist.entries() == [])
                // What is stored is what the command gave, to the byte.
                let stored = try #require(results.first?.path)
                let bytes = try Data(contentsOf: URL(filePath: place.configuration.cache + "/" + stored))
                #expect(Array(bytes) == Pictures.jpeg + Array("tail".utf8))
            }
        }
    }

    /// Bytes that become an image in the delegate, and bytes that are no image afterwards.
    @Test func `The bytes after the delegate's hook have to be an image, and not those before`() async throws {
        let swapped = Pictures.png.map { $0 ^ 0x55 }
        let origin = try LoopbackOrigin { $0.path == "/secret" ? .ok(swapped) : .ok(Array("no picture at all".utf8)) }
        struct Decrypting: WorkerDelegate {
            let hooks: Set<DelegateHook> = [.bytes]
            func bytes(_ bytes: [UInt8], of url: String, item: DelegatedItem) async -> [UInt8]? {
                bytes.map { $0 ^ 0x55 }
            }
        }
        try await withWorkplace(configure: { $0.delegate = Decrypting() }) { place in
            let job = try await place.enqueue([origin.url("/secret"), origin.url("/text")], variants: "it=8x8,png")
            try await place.drain()
            let results = try await place.store.reports.results(job: job, after: 0, limit: 10)
            #expect(results.map(\.failure) == [nil, nil, "not-an-image"])
        }
    }

    @Test(arguments: ["nothing", "/bin/true", "/bin/true:", "/bin/true:fly"])
    func `An invalid delegate command is refused`(_ text: String) {
        #expect { try DelegateCommand(parsing: text) } throws: { ($0 as? WorkerError)?.code == .usage }
    }
}

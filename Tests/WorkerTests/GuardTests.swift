import Glibc
import SystemPackage
import TestSupport
import Testing

/// Addresses that a feed must not reach, in every spelling and by every redirect.
///
/// The allowed origin is at 127.0.0.2; the forbidden one is at 127.0.0.1 and ::1 and must see no connection.
@Suite("The address guard", .timeLimit(.minutes(15)))
struct GuardTests {
    /// 127.0.0.1 in every spelling that a resolver or a parser may take for it.
    static let spellings = [
        "127.0.0.1", "127.0.0.1.", "2130706433", "0x7f000001", "017700000001", "0177.0.0.1", "0x7f.0.0.1", "127.1",
        "127.0.1", "0", "0.0.0.0", "localhost", "localhost.", "LOCALHOST", "[::1]", "[::]", "[::127.0.0.1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]", "[2002:7f00:1::]", "[2002:7f00:1::1]",
        "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2001:0:7f00:1::1]", "[2001::80ff:fffe]", "[fe80::1%25lo]",
        "\u{2460}\u{2461}\u{2466}.\u{24EA}.\u{24EA}.\u{2460}", "\u{FF11}\u{FF12}\u{FF17}\u{FF0E}0\u{3002}0\u{FF61}1",
        "user@127.0.0.1", "127.0.0.2@127.0.0.1", "127%2e0%2e0%2e1", "[::1%25lo]", "127.0.0.1%00.a.example",
    ]

    /// Asks a worker for URLs, and gives the classes they ended with.
    private func classes(_ worker: TestWorker, _ urls: [String]) async throws -> [String] {
        // By SQL, since the command refuses some spellings as no URLs.
        let list = urls.map { "'\($0)'" }.joined(separator: ", ")
        try await worker.run("init")
        try await worker.sql("INSERT INTO jobs (urls) VALUES (json_array(\(list)))")
        let job = try await worker.value("SELECT max(id) FROM jobs")
        try await worker.run(
            [
                "run", "--drain", "--quiet", "--allow-addresses", "127.0.0.2", "--retry-delay", "1ms", "--max-tries",
                "1",
            ],
            environment: [
                "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1",
                "ALL_PROXY": "socks5://127.0.0.1:1", "no_proxy": "",
            ], expecting: nil)
        return try await worker.rows("SELECT class FROM items WHERE job = \(job) ORDER BY id")
    }

    private static let refusals: Set = ["forbidden-address", "invalid-url", "dns", "connect"]

    @Test func `Every spelling of a forbidden address is refused`() async throws {
        let forbidden = try LoopbackOrigin { _ in .ok([1]) }
        try await withWorker { worker in
            let urls = Self.spellings.map { "http://\($0):\(forbidden.port)/a.png" }
            let found = try await classes(worker, urls)
            try #require(found.count == urls.count)
            for (spelling, failure) in zip(Self.spellings, found) {
                #expect(Self.refusals.contains(failure), "\(spelling): \(failure)")
            }
            #expect(found[0] == "forbidden-address")
            #expect(forbidden.connectionCount == 0)
        }
    }

    @Test func `Every kind of redirect to a forbidden address is refused`() async throws {
        let forbidden = try LoopbackOrigin { _ in .ok([1]) }
        let spellings = ["127.0.0.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "0"]
        let port = forbidden.port
        let open = try LoopbackOrigin(address: "127.0.0.2") { request in
            let words = request.path.split(separator: "/")
            guard words.count == 2, let code = Int(words[0]), let index = Int(words[1]) else { return .status(404) }
            return .redirect(to: "http://\(spellings[index]):\(port)/x", code: code)
        }
        try await withWorker { worker in
            let urls = [301, 302, 303, 307, 308].flatMap { code in
                spellings.indices.map { "http://127.0.0.2:\(open.port)/\(code)/\($0)" }
            }
            let found = try await classes(worker, urls)
            #expect(found == Array(repeating: "forbidden-address", count: urls.count))
            #expect(open.requests.count == urls.count)
            #expect(forbidden.connectionCount == 0)
        }
    }

    /// A name server of our own, in a network of our own, says 127.0.0.2 once and 127.0.0.1 from then on.
    @Test(.enabled(if: Namespace.isPossible, "network namespaces can't be made here"))
    func `A name that is rebound to a forbidden address is refused`() async throws {
        try await withWorker { worker in
            let answer = try Namespace.run(
                worker: TestWorker.binary, database: worker.database, cache: worker.cache, scratch: worker.scratch)
            let lines = answer.split(separator: "\n").map(String.init)
            #expect(lines.contains("forbidden connections: 0"), "\(answer)")
            #expect(lines.contains("open connections: 3"), "\(answer)")
            let found = try await worker.rows("SELECT url, state, class FROM items ORDER BY id")
            let tries = try await worker.rows(
                "SELECT tries.class FROM tries JOIN items ON items.id = item WHERE url LIKE '%/again' ORDER BY at")
            #expect(tries == ["http-503", "forbidden-address"])
            #expect(
                found == [
                    "http://inside.test:8000/a|failed|forbidden-address", "http://mixed.test:8000/a|failed|bad-image",
                    "http://rebind.test:8000/a|failed|bad-image",
                    "http://rebind.test:8000/b|failed|forbidden-address",
                    "http://later.test:8000/again|failed|forbidden-address",
                ])
        }
    }
}

/// A network with nothing but loopback, and a name server in it.
private enum Namespace {
    static let isPossible: Bool = {
        let status = try? ChildProcess.run("unshare", ["-n", "-m", "ip", "link", "set", "lo", "up"])
        return status == 0
    }()

    /// - Returns: what the servers saw.
    static func run(worker: String, database: String, cache: String, scratch: String) throws -> String {
        let output = "\(scratch)/namespace.out"
        _ = try ChildProcess.run(
            "unshare",
            [
                "-n", "-m", "sh", "-c",
                """
                ip link set lo up && printf 'nameserver 127.0.0.1\\noptions timeout:1 attempts:2\\n' >"$1/resolv.conf" &&
                printf 'hosts: dns\\n' >"$1/nsswitch.conf" &&
                mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)" &&
                mount --bind "$1/nsswitch.conf" /etc/nsswitch.conf && exec /usr/bin/python3 -c "$2" "$3" "$4" "$5"
                """, "sh", scratch, script, worker, database, cache,
            ], files: ChildProcess.Files(output: output, errors: "\(scratch)/namespace.err"))
        let text = ProcessTable.contents(of: output) ?? []
        let errors = ProcessTable.contents(of: "\(scratch)/namespace.err") ?? []
        return String(decoding: text + errors, as: UTF8.self)
    }

    private static let script = #"""
        import socket, subprocess, sys, threading
        worker, database, cache = sys.argv[1:4]
        asked = {}

        def addresses(name):
            asked[name] = asked.get(name, 0) + 1
            if name == "inside.test": return ["127.0.0.1"]
            if name == "mixed.test": return ["127.0.0.1", "127.0.0.2"]
            return ["127.0.0.2"] if asked[name] == 1 else ["127.0.0.1"]

        def names():
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind(("127.0.0.1", 53))
            while True:
                query, client = server.recvfrom(512)
                labels, at = [], 12
                while query[at]: labels.append(query[at + 1:at + 1 + query[at]].decode()); at += 1 + query[at]
                kind = query[at + 1:at + 3]
                found = addresses(".".join(labels).lower()) if kind == b"\x00\x01" else []
                records = b"".join(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04" + socket.inet_aton(a) for a in found)
                head = query[:2] + b"\x81\x80\x00\x01" + len(found).to_bytes(2, "big") + b"\x00\x00\x00\x00"
                server.sendto(head + query[12:at + 5] + records, client)

        seen = {"127.0.0.1": 0, "127.0.0.2": 0}

        def serve(address):
            listener = socket.create_server((address, 8000))
            while True:
                conn, _ = listener.accept()
                seen[address] += 1
                threading.Thread(target=answer, args=(conn,), daemon=True).start()

        def answer(conn):
            request = conn.recv(65536)
            status = b"503 Later" if b" /again " in request else b"200 OK"
            conn.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            conn.close()

        for task in [(names, ()), (serve, ("127.0.0.1",)), (serve, ("127.0.0.2",))]:
            threading.Thread(target=task[0], args=task[1], daemon=True).start()

        def work(*urls, tries=1):
            common = ["--db", database, "--cache", cache]
            subprocess.run([worker, "enqueue", *urls] + common, check=True, stdout=subprocess.DEVNULL)
            subprocess.run([worker, "run", "--drain", "--quiet", "--allow-addresses", "127.0.0.2", "--max-tries", str(tries),
                "--retry-delay", "20ms", "--name-lifetime", "10ms"] + common, stdout=subprocess.DEVNULL)

        work("http://inside.test:8000/a")
        work("http://mixed.test:8000/a")
        work("http://rebind.test:8000/a")
        work("http://rebind.test:8000/b")
        # Two tries of one run, each with a look-up of its own.
        work("http://later.test:8000/again", tries=2)
        print("forbidden connections:", seen["127.0.0.1"])
        print("open connections:", seen["127.0.0.2"])
        """#
}

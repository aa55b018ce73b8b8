import FoundationEssentials
import Synchronization
import TestSupport
import Testing

/// Jobs that send a notice to a receiver or a command when they end.
@Suite(.timeLimit(.minutes(15))) struct NoticeTests {
    private struct Message: Decodable {
        struct Content: Decodable {
            struct Job: Decodable {
                let job, done, failed: Int
                let name, state: String?
            }
            struct Failure: Decodable {
                let `class`, host: String
                let count: Int
            }
            let job: Job
            let failures: [Failure]
        }
        let type: String
        let timestamp: String
        let data: Content
    }

    private static let secret = "0123456789abcdef0123456789abcdef"

    /// Pictures, and a receiver at `/hook` whose answers are given in order; the last one again and again.
    private func withReceiver(
        _ answers: [LoopbackReply], _ body: @escaping (TestWorker) async throws -> Void,
    ) async throws {
        let left = Mutex(answers)
        try await withWorker(
            { request in
                guard request.path.hasPrefix("/hook") else { return Pictures.reply(request) }
                return left.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
            }, body)
    }

    private func notices(_ w: TestWorker) -> [LoopbackOrigin.Request] {
        w.origin.requests.filter { $0.path.hasPrefix("/hook") }
    }

    private func message(_ body: [UInt8]) throws -> Message {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Message.self, from: Data(body))
    }

    @Test func `A receiver gets one signed notice with the job's numbers`() async throws {
        try await withReceiver([.status(204)]) { (w) async throws -> Void in
            let secret = try w.file("secret", Self.secret + "\n")
            try await w.enqueue(
                [w.url("/1.png"), w.url("/none")], "--name", "shop", "--notify", w.url("/hook?token=1"), "--header",
                "Authorization: Bearer no")
            try await w.drain("--notify-secret-file", secret, expecting: 2)
            try await w.drain("--notify-secret-file", secret)
            let request = try #require(notices(w).first)
            #expect(notices(w).count == 1 && request.method == "POST")
            #expect(request.header("Content-Type") == "application/json")
            #expect(request.header("Authorization") == nil)
            let told = try message(request.body)
            #expect(told.type == "job.ended" && told.data.job.name == "shop" && told.data.job.state == "finished")
            #expect((told.data.job.done, told.data.job.failed) == (1, 1))
            #expect(told.data.failures.map(\.class) == ["http-404"])
            // As any implementation of the standard computes it.
            let id = try #require(request.header("webhook-id"))
            let time = try #require(request.header("webhook-timestamp"))
            let signed = try w.file("signed", "\(id).\(time)." + String(decoding: request.body, as: UTF8.self))
            let code = try await w.run(
                ["-c", "openssl dgst -sha256 -hmac '\(Self.secret)' -binary '\(signed)' | base64"], program: "sh")
            #expect(request.header("webhook-signature") == "v1,\(code.line)")
            #expect(try await w.run("status", "1").output.contains("notice sent"))
        }
    }

    @Test func `A failed notice is sent again with the same id`() async throws {
        try await withReceiver([.status(503), .redirect(to: "/1.png"), .noReply, .status(200)]) {
            (w) async throws -> Void in
            try await w.enqueue(w.url("/1.png"), "--notify", w.url("/hook"))
            try await w.drain()
            #expect(try await w.run("status", "1").output.contains("notice due at "))
            for reason in ["redirects", "", ""] {
                try await w.sql("UPDATE notices SET due_at = 0")
                try await w.drain()
                #expect(try await w.run("status", "1").output.contains(reason))
            }
            #expect(notices(w).count == 4 && Set(notices(w).map { $0.header("webhook-id") }).count == 1)
            // Neither a redirect nor a repeated request took the place of a picture's.
            #expect(w.origin.requestCount("/1.png") == 1)
            #expect(try await w.value("SELECT state, attempts FROM notices") == "sent|4")
            // Without a secret there is no signature.
            #expect(notices(w).allSatisfy { $0.header("webhook-signature") == nil })
        }
    }

    @Test func `A receiver that answers with 410 gets no more notices`() async throws {
        try await withReceiver([.status(410)]) { (w) async throws -> Void in
            try await w.enqueue(w.url("/1.png"), "--notify", w.url("/hook"))
            try await w.drain()
            #expect(
                try await w.run("status", "1").output.contains(
                    "notice not accepted after 1 attempt: 127.0.0.1 answered with status 410"))
        }
    }

    @Test func `The address guard holds for receivers, and the job finishes without its notice`() async throws {
        try await withReceiver([.status(200)]) { (w) async throws -> Void in
            try await w.run("init")
            try await w.sql("INSERT INTO jobs (urls, notify) VALUES ('[]', '\(w.url("/hook"))')")
            try await w.run("run", "--drain", "--min-free", "0")
            #expect(notices(w).isEmpty)
            #expect(try await w.value("SELECT jobs.state, notices.state FROM jobs, notices") == "finished|waiting")
            #expect(try await w.value("SELECT message FROM notices").contains("--allow-addresses"))
        }
    }

    @Test func `A running worker sends notices to a receiver, and to a command on its standard input`() async throws {
        try await withReceiver([.status(200)]) { (w) async throws -> Void in
            let program = try w.file("told.sh", "#!/bin/sh\ncat >'\(w.place("told.json"))'\n")
            try await w.run(["+x", program], program: "chmod")
            try await w.run("init")
            _ = try w.start("--notify-command", program)
            try await w.enqueue(w.url("/1.png"), "--notify", w.url("/hook"))
            try await w.enqueue(w.url("/2.png"), "--name", "two", "--notify", "command")
            try await w.eventually("both are sent") {
                try await w.value("SELECT count(*) FROM notices WHERE state = 'sent'") == "2"
            }
            #expect(notices(w).count == 1)
            let told = try message(w.bytes(of: w.place("told.json")))
            #expect(told.data.job.name == "two" && told.data.job.done == 1)
        }
    }

    @Test func `The failure of a notice command is shown with its reason`() async throws {
        try await withReceiver([.status(200)]) { (w) async throws -> Void in
            let program = try w.file("told.sh", "#!/bin/sh\necho no mail today >&2; exit 3\n")
            try await w.run(["+x", program], program: "chmod")
            try await w.enqueue(w.url("/1.png"), "--notify", "command")
            try await w.drain("--notify-command", program)
            #expect(try await w.run("status", "1").output.contains("The command ended with code 3: no mail today"))
        }
    }

    @Test func `A manifest names the receiver, and an invalid receiver is refused before the job is added`()
        async throws
    {
        try await withReceiver([.status(200)]) { (w) async throws -> Void in
            try await w.run("init")
            let batch = try w.file("shop.yaml", "urls: ['\(w.url("/1.png"))']\nnotify: \(w.url("/hook"))\n")
            try await w.run(["warm", batch] + TestWorker.quick)
            #expect(notices(w).count == 1)
            let refused = try await w.run("enqueue", w.url("/1.png"), "--notify", "mailto:me", expecting: 64)
            #expect(refused.errors.contains("notify must be an http or https URL, or 'command', not 'mailto:me'."))
            let short = try w.file("short", "abc")
            #expect(
                try await w.run("run", "--drain", "--notify-secret-file", short, expecting: 64).errors
                    .contains("openssl rand -hex 32"))
            #expect(
                try await w.run("run", "--drain", "--notify-command", "/none", expecting: 64).errors
                    .contains("there is no executable file '/none'"))
        }
    }
}

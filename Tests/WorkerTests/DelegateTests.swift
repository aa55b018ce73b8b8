import FoundationEssentials
import Glibc
import SystemPackage
import TestSupport
import Testing

/// The examples as they are, and commands as users run them.
@Suite(.timeLimit(.minutes(15))) struct DelegateTests {
    private static let examples = FilePath(#filePath).removingLastComponent().removingLastComponent()
        .removingLastComponent().appending("Examples")
    private static let sepia = examples.appending("commands/sepia").string
    private static let hasVips = ChildProcess.find("vips") != nil && ChildProcess.find("vipsheader") != nil

    private static func grey(_ request: LoopbackOrigin.Request) -> LoopbackReply {
        .ok(TestImages.png(40, 30, pixel: TestImages.solid((100, 100, 100, 255))))
    }

    /// Grey 100 in sepia; libvips cuts what is between two values, and ours rounds it.
    private static func isSepia(_ bytes: [UInt8]) -> Bool {
        bytes.count >= 3 && abs(Int(bytes[0]) - 135) <= 2 && abs(Int(bytes[1]) - 120) <= 2
            && abs(Int(bytes[2]) - 94) <= 2
    }

    private func program(_ name: String, _ script: String, _ w: TestWorker) throws -> String {
        let path = try w.file(name, "#!/bin/sh\n\(script)\n")
        guard chmod(path, 0o700) == 0 else { throw Errno(rawValue: errno) }
        return path
    }

    // MARK: - The library

    @Test func aProgramThatEmbedsTheWorkerHasItsOwnTransformAndFormat() async throws {
        let pixel: [UInt8] = [100, 100, 100, 100, 100, 100, 255, 255]
        let source = Array("farbfeld".utf8) + [0, 0, 0, 4, 0, 0, 0, 2] + (0..<8).flatMap { _ in pixel }
        let program = FilePath(TestWorker.binary).removingLastComponent().appending("SepiaWorker").string
        try await withWorker({ _ in .ok(source) }) { w in
            let run = try await w.run(
                [w.database, w.cache, "v=2x,delegate:sepia w=2x,png,delegate:sepia:0.5", w.url("/a.ff")],
                program: program)
            let rows = run.lines.map { $0.split(separator: " ").map(String.init) }
            #expect(Set(rows.map { "\($0[0]) \($0[1])" }) == ["original farbfeld", "v farbfeld", "w png"])
            let made = try #require(rows.first { $0[0] == "v" })
            let bytes = try w.bytes(of: "\(w.cache)/\(made[2])")
            #expect(bytes.count == 16 + 8 * 2)
            #expect(Self.isSepia([bytes[16], bytes[18], bytes[20]]), "\(bytes)")
        }
    }

    @Test func aProgramThatEmbedsTheWorkerServesAddressesOfItsOwn() async throws {
        let program = FilePath(TestWorker.binary).removingLastComponent().appending("SepiaWorker").string
        try await withWorker { w in
            let run = try await w.run(
                [w.database, w.cache, "v=2x2", "colour:ff8800", "colour:nothing"], program: program)
            let rows = run.lines.map { $0.split(separator: " ").map(String.init) }
            let made = try #require(rows.first { $0[0] == "v" })
            let bytes = try w.bytes(of: "\(w.cache)/\(made[2])")
            #expect([bytes[16], bytes[18], bytes[20]] == [0xFF, 0x88, 0x00], "\(bytes)")
            #expect(run.lines.contains { $0.contains("A colour is six hexadecimal digits.") }, "\(run.lines)")
            #expect(run.errors.contains("colour:ff8800: 144 bytes") && w.origin.requests.isEmpty, "\(run.errors)")
        }
    }

    // MARK: - Commands

    /// A program that is asked for each item's settings.
    @Test func aDelegateCommandChangesTheSettingsOfOneItem() async throws {
        try await withWorker(Self.grey) { w in
            let answer = #"{"variants":"small=8x6,png","options":"discard-original","headers":{"X-Own":"1"}}"#
            let chooser = try program(
                "chooser",
                #"while read -r line; do case "$line" in */b.png*) echo '\#(answer)';; *) echo '{}';; esac; done"#, w)
            try await w.enqueue([w.url("/a.png"), w.url("/b.png")], "--variant", "v=20x,png")
            try await w.drain("--delegate-command", "\(chooser):options")
            func names(_ path: String) async throws -> [String] {
                try await w.rows("SELECT variant FROM results WHERE url = '\(w.url(path))' ORDER BY variant")
            }
            #expect(try await names("/a.png") == ["original", "v"])
            #expect(try await names("/b.png") == ["small"])
            #expect(w.origin.requests.filter { $0.header("X-Own") == "1" }.map(\.path) == ["/b.png"])
        }
    }

    @Test(.enabled(if: hasVips)) func theExampleCommandMakesSepia() async throws {
        try await withWorker(Self.grey) { w in
            try await w.enqueue(
                w.url("/a.png"), "--variant", "v=20x,png,command:sepia,invert,invert", "--variant", "plain=10x")
            try await w.drain("--transform-command", "sepia=\(Self.sepia)@1")
            #expect(try await w.counts("1") == "1|0|0|0|0")
            let path = try await w.path(w.url("/a.png"), variant: "v")
            let raw = w.place("raw.ppm")
            #expect(try ChildProcess.run("vips", ["copy", path, raw]) == 0)
            let bytes = try w.bytes(of: raw)
            #expect(Self.isSepia(Array(bytes.suffix(3))), "\(bytes.suffix(3))")
            #expect(try await w.value("SELECT width || 'x' || height FROM results WHERE variant = 'v'") == "20x15")
            // The same again is cached, another version isn't.
            try await w.enqueue(w.url("/a.png"), "--variant", "v=20x,png,command:sepia,invert,invert")
            try await w.drain("--transform-command", "sepia=\(Self.sepia)@1")
            #expect(try await w.counts("2") == "0|1|0|0|0")
            let before = try await w.value("SELECT count(*) FROM variants")
            try await w.enqueue(w.url("/a.png"), "--variant", "v=20x,png,command:sepia,invert,invert")
            try await w.drain("--transform-command", "sepia=\(Self.sepia)@2")
            #expect(try await w.value("SELECT count(*) > \(before) FROM variants") == "1")
        }
    }

    @Test(.enabled(if: hasVips)) func theConfigurationFileNamesCommands() async throws {
        try await withWorker(Self.grey) { w in
            let config = try w.file(
                "worker.yaml", "transform-command: [\"sepia=\(Self.sepia)@1\"]\ncommand-timeout: 20s\n")
            try await w.enqueue(w.url("/a.png"), "--variant", "v=20x,webp,command:sepia,command:sepia")
            try await w.drain("--config", config)
            #expect(try await w.counts("1") == "1|0|0|0|0")
        }
    }

    /// Variants without commands keep the animation.
    @Test(.enabled(if: hasVips)) func aCommandGetsTheFirstFrameOfAnAnimation() async throws {
        let gif = TestImages.gif(40, 30, frames: [100, 200])
        try await withWorker({ _ in .ok(gif) }) { w in
            try await w.enqueue(
                w.url("/a.gif"), "--variant", "v=20x,webp,command:sepia", "--variant", "moving=20x,webp")
            try await w.drain("--transform-command", "sepia=\(Self.sepia)@1")
            #expect(try await w.counts("1") == "1|0|0|0|0")
            let still = try w.bytes(of: try await w.path(w.url("/a.gif"), variant: "v"))
            let moving = try w.bytes(of: try await w.path(w.url("/a.gif"), variant: "moving"))
            // The chunk of an animation's settings.
            #expect(!String(decoding: still, as: UTF8.self).contains("ANIM"))
            #expect(String(decoding: moving, as: UTF8.self).contains("ANIM"))
        }
    }

    @Test func doctorListsTheCodersInTheirOrder() async throws {
        try await withWorker { w in
            try await w.run("init")
            let line = try #require(try await w.run("doctor").lines.first { $0.hasPrefix("ok: coders: ") })
            #expect(line.hasPrefix("ok: coders: qoi (1), bmp (1), ") && line.contains("jpeg (vips "))
        }
    }

    @Test func aFailingDelegateCommandFailsTheItemWithClassDelegate() async throws {
        try await withWorker(Self.grey) { w in
            let scripts = [
                "slow": "sleep 60", "much": "echo '{\"ok\":true}'; cat /dev/zero", "code": "echo oh dear >&2; exit 3",
                "junk": "echo '{\"ok\":true}'; echo this is no picture at all, is it",
                "refuse": "echo '{\"error\":\"no\"}'",
            ]
            var arguments =
                ["run", "--drain", "--command-timeout", "500ms", "--command-output", "1MiB"] + TestWorker.quick
            for (name, script) in scripts.sorted(by: { $0.key < $1.key }) {
                arguments += ["--transform-command", "\(name)=\(try program(name, script, w))"]
                try await w.enqueue(w.url("/\(name).png"), "--variant", "v=20x,command:\(name)")
            }
            try await w.run(arguments, expecting: 2)
            let rows = try await w.rows("SELECT class || ': ' || message FROM failures ORDER BY item")
            let words = [
                "code 3: oh dear", "can't be used", "more than 1048576 bytes", "says: no", "longer than 500 ms",
            ]
            #expect(rows.count == words.count)
            for (row, words) in zip(rows, words) {
                #expect(row.hasPrefix("delegate: ") && row.contains(words), "\(row)")
            }
        }
    }

    @Test func aMissingTransformCommandIsRefusedAtTheStart() async throws {
        try await withWorker { w in
            for text in ["a=/no/such/program", "a=/etc/passwd", "a", "a=/bin/true,a=/bin/false"] {
                let run = try await w.run("run", "--drain", "--transform-command", text, expecting: 64)
                #expect(run.errors.contains("command"), "\(run.errors)")
            }
        }
    }

    @Test func aVariantCannotNameAProgram() async throws {
        try await withWorker(Self.grey) { w in
            try await w.run("init")
            for effect in ["command:/bin/true", "command:../bin/true", "command:true"] {
                try await w.sql(
                    "INSERT INTO jobs (urls, variants) VALUES ('[\"\(w.url("/a.png"))\"]', 'v=20x,\(effect)')")
            }
            try await w.drain(expecting: nil)
            #expect(try await w.value("SELECT count(*) FROM results WHERE variant = 'v' AND path IS NOT NULL") == "0")
            #expect(try await w.value("SELECT error LIKE '%must be a name of 1 to 64%' FROM jobs WHERE id = 1") == "1")
        }
    }

    @Test func aStoppedWorkerEndsItsRunningCommand() async throws {
        try await withWorker(Self.grey) { w in
            let pid = w.place("pid")
            let slow = try program("slow", "echo $$ > \(pid); exec sleep 300", w)
            try await w.enqueue(w.url("/a.png"), "--variant", "v=20x,command:slow")
            let child = try await w.startRegistered(
                "--transform-command", "slow=\(slow)", "--command-timeout", "300s", "--grace", "100ms")
            try await w.eventually("the command runs") {
                try access(pid, F_OK) == 0 && !w.text(of: pid).isEmpty
            }
            let process = try #require(pid_t(try w.text(of: pid).trimmingPrefix(" ").prefix { $0.isNumber }))
            child.send(SIGTERM)
            #expect(try await child.wait() == .code(0))
            #expect(kill(process, 0) == -1)
            #expect(try await w.value("SELECT state FROM items") == "queued")
        }
    }
}

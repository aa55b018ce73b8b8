import Glibc

/// Serves one connection until the client leaves or a reply ends it.
struct LoopbackConnection {
    let socket: LoopbackSocket
    let record: LoopbackRecord
    let handler: @Sendable (LoopbackOrigin.Request) -> LoopbackReply

    private static let filler = [UInt8](repeating: 0x78, count: 64 << 10)

    func serve() {
        var buffer: [UInt8] = []
        while let request = readRequest(&buffer) {
            record.began(request)
            guard send(handler(request), to: request) else { return }
        }
    }

    /// Whether the connection can be used again.
    private func send(_ reply: LoopbackReply, to request: LoopbackOrigin.Request) -> Bool {
        switch reply {
        case .status(let code, let headers, let body):
            // Ended before the client can know it and ask for more, or two in turn would look like two at once.
            record.ended(request)
            return sendHead(code, headers, length: code == 304 || code == 204 ? nil : body.count) && socket.send(body)
        case .delayed(let milliseconds, let then):
            socket.waitForClient(milliseconds: milliseconds)
            return send(then, to: request)
        default:
            defer { record.ended(request) }
            return misbehave(reply)
        }
    }

    private func misbehave(_ reply: LoopbackReply) -> Bool {
        switch reply {
        case .status, .delayed:
            return false
        case .partial(let body, let announced, let then):
            return sendHead(200, [], length: announced) && socket.send(body) && goOn(then, left: announced - body.count)
        case .broken(let body, let announced, let headers):
            _ = sendHead(200, headers, length: announced) && socket.send(body)
            return false
        case .reset(let sent, let announced):
            _ = sendHead(200, [], length: announced) && sendFiller(sent)
            return goOn(.reset, left: 0)
        case .closeEarly(let sent, let announced):
            _ = sendHead(200, [], length: announced) && sendFiller(sent)
            return false
        case .chunked(let total, let start):
            return sendChunks(total, startingWith: start) && socket.send("0\r\n\r\n")
        case .chunkedCut(let total):
            _ = sendChunks(total, startingWith: [])
            return false
        case .stall(let sent):
            _ = sendHead(200, [], length: sent + 1) && sendFiller(sent)
            socket.waitForClient(milliseconds: nil)
            return false
        case .silence:
            socket.waitForClient(milliseconds: nil)
            return false
        case .drip(let rate, let total):
            return sendHead(200, [], length: total) && drip(total, perSecond: rate)
        case .slowly(let body, let pieces, let pause, let code, let headers):
            return sendHead(code, headers, length: body.count) && sendPieces(body, pieces, pause)
        case .hugeHeaders(let bytes, let inOneLine):
            return sendHugeHeaders(bytes, inOneLine: inOneLine)
        case .raw(let head, let body, let closes):
            return socket.send(head) && socket.send(body) && !closes
        case .answersTwice(let body, let late, let milliseconds):
            guard sendHead(200, [], length: body.count), socket.send(body) else { return false }
            usleep(UInt32(milliseconds) * 1_000)
            return socket.send(late)
        case .garbage:
            _ = socket.send("\u{1}\u{2} this is not HTTP \r\n\r\n")
            return false
        case .noReply:
            return false
        }
    }

    private func sendHead(_ code: Int, _ headers: [(name: String, value: String)], length: Int?) -> Bool {
        var head = "HTTP/1.1 \(code) Reply\r\n"
        for header in headers { head += "\(header.name): \(header.value)\r\n" }
        if let length { head += "Content-Length: \(length)\r\n" }
        return socket.send(head + "\r\n")
    }

    private func sendFiller(_ count: Int) -> Bool {
        var left = count
        while left > 0 {
            let part = min(left, Self.filler.count)
            guard socket.send(part == Self.filler.count ? Self.filler : Array(Self.filler.prefix(part))) else {
                return false
            }
            left -= part
        }
        return true
    }

    /// Whether the connection can be used again.
    private func goOn(_ then: LoopbackReply.Afterwards, left: Int) -> Bool {
        switch then {
        case .close:
            return false
        case .reset:
            // What was sent shall arrive before the reset throws away what was not.
            usleep(20_000)
            socket.resetOnClose()
            return false
        case .stall:
            socket.waitForClient(milliseconds: nil)
            return false
        case .drip(let rate):
            return drip(left, perSecond: rate)
        }
    }

    private func sendChunks(_ total: Int, startingWith start: [UInt8]) -> Bool {
        guard socket.send("HTTP/1.1 200 Reply\r\nTransfer-Encoding: chunked\r\n\r\n") else { return false }
        if !start.isEmpty {
            guard socket.send("\(String(start.count, radix: 16))\r\n"), socket.send(start), socket.send("\r\n") else {
                return false
            }
        }
        var left = total
        while left > 0 {
            let part = min(left, Self.filler.count)
            let size = String(part, radix: 16)
            guard socket.send("\(size)\r\n"), sendFiller(part), socket.send("\r\n") else { return false }
            left -= part
        }
        return true
    }

    private func drip(_ total: Int, perSecond rate: Int) -> Bool {
        // Twenty times a second at most, so that a rate is a rate and not a burst each second.
        let part = max(1, rate / 20)
        var left = total
        while left > 0 {
            guard sendFiller(min(part, left)) else { return false }
            left -= part
            if socket.waitForClient(milliseconds: 1000 * part / rate) { return false }
        }
        return true
    }

    /// - Parameter pause: in milliseconds.
    private func sendPieces(_ body: [UInt8], _ pieces: Int, _ pause: Int) -> Bool {
        let length = body.count / max(1, pieces) + 1
        for start in stride(from: 0, to: body.count, by: length) {
            guard socket.send(Array(body[start..<min(start + length, body.count)])) else { return false }
            if socket.waitForClient(milliseconds: pause) { return false }
        }
        return true
    }

    private func sendHugeHeaders(_ bytes: Int, inOneLine: Bool) -> Bool {
        guard socket.send("HTTP/1.1 200 Reply\r\nContent-Length: 0\r\n") else { return false }
        let line = "X-Filler: " + String(repeating: "x", count: inOneLine ? bytes : 1000 - 12) + "\r\n"
        for _ in 0..<(inOneLine ? 1 : bytes / 1000) {
            guard socket.send(line) else { return false }
        }
        return socket.send("\r\n")
    }

    /// The next request, or nil when the client has left or sends something else. Bodies are not expected.
    private func readRequest(_ buffer: inout [UInt8]) -> LoopbackOrigin.Request? {
        let blank = Array("\r\n\r\n".utf8)
        while true {
            if let end = buffer.firstRange(of: blank) {
                let text = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                buffer.removeSubrange(..<end.upperBound)
                guard let head = Self.parse(text) else { return nil }
                let length = head.header("Content-Length").flatMap { Int($0) } ?? 0
                guard length > 0 else { return head }
                while buffer.count < length {
                    guard let more = socket.receive() else { return nil }
                    buffer += more
                }
                defer { buffer.removeFirst(length) }
                return LoopbackOrigin.Request(
                    method: head.method, path: head.path, headers: head.headers, body: Array(buffer.prefix(length)))
            }
            // No method begins like that: it is TLS, say.
            if let first = buffer.first, !(0x41...0x5A).contains(first) { return nil }
            guard buffer.count < 1 << 20, let more = socket.receive() else { return nil }
            buffer += more
        }
    }

    private static func parse(_ text: String) -> LoopbackOrigin.Request? {
        let lines = text.split(separator: "\r\n")
        guard let words = lines.first?.split(separator: " "), words.count == 3 else { return nil }
        let headers = lines.dropFirst().compactMap { line -> (name: String, value: String)? in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            return (String(line[..<colon]), String(value))
        }
        return LoopbackOrigin.Request(method: String(words[0]), path: String(words[1]), headers: headers, body: [])
    }
}

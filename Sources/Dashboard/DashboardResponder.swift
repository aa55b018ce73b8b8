internal import Foundation
internal import HTTPTypes
internal import Hummingbird
internal import Jobs
internal import NIOCore

/// Checks whether a request may be answered, and hands it to the code of its path.
struct DashboardResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    let access: AccessGuard
    let data: DashboardData
    let actions: DashboardActions
    let host: any DashboardHost
    private let streams: StateStreams

    init(access: AccessGuard, data: DashboardData, actions: DashboardActions, host: any DashboardHost) {
        self.access = access
        self.data = data
        self.actions = actions
        self.host = host
        streams = StateStreams(data: data)
    }

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
        var response: Response
        do {
            response = try await answer(request)
        } catch {
            response = Self.failure(error)
        }
        for (name, value) in Self.safety where response.headers[name] == nil { response.headers[name] = value }
        return request.method == .head ? response.createHeadResponse() : response
    }

    /// Headers of every answer that does not set its own: browsers load and run nothing from other sites, let no page
    /// frame the dashboard, and store no answer.
    private static let safety: [(HTTPField.Name, String)] = [
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
        ("X-Content-Type-Options", "nosniff"), ("Cache-Control", "no-store"), ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"), ("Cross-Origin-Resource-Policy", "same-origin"),
    ].compactMap { name, value in HTTPField.Name(name).map { ($0, value) } }

    // MARK: - Routes

    private func answer(_ request: Request) async throws -> Response {
        guard access.isMeantForUs(request) else {
            throw Refusal(.misdirectedRequest, "This address is served for this machine's own names only.")
        }
        let path = request.uri.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        let isReading = request.method == .get || request.method == .head
        switch (isReading, path.first) {
        case (true, "healthz"): return .text("ok\n")
        case (true, "readyz"):
            let problem = await host.problem()
            return .text((problem ?? "ready") + "\n", status: problem == nil ? .ok : .serviceUnavailable)
        case (true, "metrics"):
            guard access.hasBearerToken(request) || access.secret(of: request) != nil else {
                throw Refusal(.unauthorized, "Metrics need the token: Authorization: Bearer TOKEN")
            }
            return .text(try await host.metrics(), type: "text/plain; version=0.0.4; charset=utf-8")
        case (true, _):
            if let asset = WebAsset.named(path) { return asset.response }
            guard let secret = access.secret(of: request) else {
                guard path.isEmpty || path == ["login"] else { throw Refusal(.unauthorized, "Log in first.") }
                return WebAsset.login.response
            }
            if path.isEmpty { return WebAsset.page.response }
            if path == ["login"] { return .redirect(to: "/") }
            return try await reading(path, request, secret: secret)
        case (false, _):
            guard request.method == .post else { throw Refusal(.methodNotAllowed, "Only GET and POST are allowed.") }
            return try await changing(path, request)
        }
    }

    private func reading(_ path: [String], _ request: Request, secret: String) async throws -> Response {
        let query = request.uri.queryParameters
        switch (path.count, path.first, path.dropFirst().first) {
        case (2, "api", "session"): return try .json(["csrf": secret, "login": access.needsLogin ? "yes" : "no"])
        case (2, "api", "state"): return .json(bytes: try await streams.state())
        case (2, "api", "stream"): return try streams.response()
        case (2, "api", "charts"): return try .json(await data.charts())
        case (2, "api", "hosts"): return try .json(await data.hosts())
        case (2, "api", "blacklist"): return try .json(await data.blacklist(try Blacklist.Selection(query)))
        case (2, "api", "cache"): return try .json(await data.cacheReport())
        case (2, "api", "schedules"): return try .json(await data.schedules())
        case (3, "api", "jobs"): return try .json(await data.job(try number(path[2])))
        case (4, "api", "jobs") where path[3] == "failures":
            return try .json(await data.failures(of: try number(path[2])))
        case (4, "api", "jobs") where path[3] == "items":
            return try .json(await data.items(of: try number(path[2]), try ItemQuery(query)))
        case (3, "api", "items"): return try .json(await data.history(ofItem: try number(path[2])))
        case (4, "api", "items") where path[3] == "picture":
            let (bytes, type) = try await data.picture(ofItem: try number(path[2]))
            return .picture(bytes, type: type)
        default: throw Refusal(.notFound, "There is no such page.")
        }
    }

    private func changing(_ path: [String], _ request: Request) async throws -> Response {
        guard !access.isForeign(request) else {
            throw Refusal(.forbidden, "The request comes from another site's page.")
        }
        if path == ["login"] { return try await logIn(request) }
        guard access.secret(of: request) != nil else { throw Refusal(.unauthorized, "Log in first.") }
        guard access.mayChange(request) else {
            throw Refusal(.forbidden, "The request doesn't carry the secret of its session; load the page again.")
        }
        if path == ["logout"] {
            access.logOut(request)
            return .cookie(nil)
        }
        guard path.first == "api" else { throw Refusal(.notFound, "There is no such page.") }
        let body = try await Self.body(of: request, upTo: 8 << 20)
        return try .json(["message": await actions.run(Array(path.dropFirst()), body)])
    }

    private func logIn(_ request: Request) async throws -> Response {
        let form = String(decoding: try await Self.body(of: request, upTo: 4_096), as: UTF8.self)
        let token = form.split(separator: "&").first { $0.hasPrefix("token=") }?.dropFirst("token=".count)
        let given = token?.replacing("+", with: " ").removingPercentEncoding ?? ""
        guard let id = access.logIn(given) else {
            // Slows down the guessing of tokens.
            try await Task.sleep(for: .seconds(1))
            return WebAsset.wrongToken.response
        }
        return .cookie(id)
    }

    private static func body(of request: Request, upTo limit: Int) async throws -> [UInt8] {
        do {
            return Array(buffer: try await request.body.collect(upTo: limit))
        } catch is NIOTooManyBytesError {
            throw Refusal(.contentTooLarge, "The request is larger than \(limit >> 10) KiB.")
        }
    }

    private func number(_ text: String) throws(Refusal) -> Int64 {
        guard let number = Int64(text), number > 0 else { throw Refusal(.notFound, "'\(text)' is no number above 0.") }
        return number
    }

    private static func failure(_ error: any Error) -> Response {
        let refusal: Refusal =
            switch error {
            case let error as Refusal: error
            case let error as JobsError: Refusal(error)
            case let error as RequestMistake: Refusal(.badRequest, error.message)
            default: Refusal(.badRequest, "The request can't be read. Load the page again, and repeat what you did.")
            }
        // Best effort: a text can always be written as JSON.
        return (try? .json(["error": refusal.message], status: refusal.status)) ?? Response(status: refusal.status)
    }
}

/// The refusal of a request: its HTTP status and a sentence.
struct Refusal: Error {
    let status: HTTPResponse.Status
    /// A sentence for the user.
    let message: String

    init(_ status: HTTPResponse.Status, _ message: String) {
        self.status = status
        self.message = message
    }

    init(_ error: JobsError) {
        let status: HTTPResponse.Status =
            switch error.code {
            case .notFound: .notFound
            case .refused: .conflict
            case .busy: .serviceUnavailable
            default: .internalServerError
            }
        self.init(status, error.message)
    }
}

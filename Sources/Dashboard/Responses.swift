internal import FoundationEssentials
internal import HTTPTypes
internal import Hummingbird
internal import NIOCore

extension Response {
    static func text(
        _ text: String, type: String = "text/plain; charset=utf-8", status: HTTPResponse.Status = .ok,
    ) -> Response {
        Response(
            status: status, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }

    static func json(_ value: some Encodable, status: HTTPResponse.Status = .ok) throws -> Response {
        json(bytes: try JSONText.bytes(of: value), status: status)
    }

    static func json(bytes: [UInt8], status: HTTPResponse.Status = .ok) -> Response {
        Response(
            status: status, headers: [.contentType: "application/json; charset=utf-8"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    /// A picture that came from an origin. Browsers show it as a picture, and never run it as a page or script.
    static func picture(_ bytes: [UInt8], type: String) -> Response {
        Response(
            status: .ok,
            headers: [
                .contentType: type, .contentSecurityPolicy: "default-src 'none'; sandbox",
                .cacheControl: "private, max-age=300",
            ], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }

    static func redirect(to path: String) -> Response { Response(status: .seeOther, headers: [.location: path]) }

    /// Sets the session's cookie, or removes it, and goes to the page.
    static func cookie(_ id: String?) -> Response {
        var response = redirect(to: "/")
        response.headers[.setCookie] =
            "\(AccessGuard.cookie)=\(id ?? ""); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(id == nil ? 0 : 43_200)"
        return response
    }
}

/// JSON as the commands with `--json` write it.
enum JSONText {
    static func bytes(of value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        return Array(try encoder.encode(value))
    }
}

/// A file of the page, which is a part of the program.
struct WebAsset: Sendable {
    private let bytes: [UInt8]
    private let type: String
    private let status: HTTPResponse.Status

    private init(_ bytes: [UInt8], _ type: String, status: HTTPResponse.Status = .ok) {
        self.bytes = bytes
        self.type = type + "; charset=utf-8"
        self.status = status
    }

    static let page = WebAsset(PackageResources.index_html, "text/html")
    static let login = WebAsset(PackageResources.login_html, "text/html")
    /// The same page after a wrong token.
    static let wrongToken = WebAsset(
        Array(
            String(decoding: PackageResources.login_html, as: UTF8.self)
                .replacing("<!--wrong-->", with: "<p class=\"wrong\" role=\"alert\">That is not the token.</p>").utf8),
        "text/html", status: .unauthorized)
    private static let assets: [String: WebAsset] = [
        "style.css": WebAsset(PackageResources.style_css, "text/css"),
        "app.js": WebAsset(PackageResources.app_js, "text/javascript"),
        "charts.js": WebAsset(PackageResources.charts_js, "text/javascript"),
        "views.js": WebAsset(PackageResources.views_js, "text/javascript"),
        "icon.svg": WebAsset(PackageResources.icon_svg, "image/svg+xml"),
    ]

    /// - Parameter path: the parts of a request's path.
    static func named(_ path: [String]) -> WebAsset? { path.count == 1 ? assets[path[0]] : nil }

    var response: Response {
        Response(
            status: status, headers: [.contentType: type], body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
    }
}

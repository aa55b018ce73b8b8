import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

@Suite("Locations", .timeLimit(.minutes(5)))
struct BucketLocationTests {
    struct Good: Sendable, CustomTestStringConvertible {
        let text: String
        var server = BucketLocation.Server()
        /// Of the key `a b`.
        let url: String
        let shown: String
        var testDescription: String { "\(text) \(server.endpoint ?? server.region)" }
    }

    static let good = [
        Good(text: "s3://pics", url: "https://pics.s3.us-east-1.amazonaws.com/a%20b", shown: "s3://pics"),
        Good(text: "s3://pics/", url: "https://pics.s3.us-east-1.amazonaws.com/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics//x/y z//", server: .init(region: "eu-central-1"),
            url: "https://pics.s3.eu-central-1.amazonaws.com/x/y%20z/a%20b", shown: "s3://pics/x/y z"),
        Good(
            text: "s3://pics", server: .init(region: "cn-north-1"),
            url: "https://pics.s3.cn-north-1.amazonaws.com.cn/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics.example.com/x", url: "https://s3.us-east-1.amazonaws.com/pics.example.com/x/a%20b",
            shown: "s3://pics.example.com/x"),
        Good(
            text: "s3://pics", server: .init(isPathStyle: true),
            url: "https://s3.us-east-1.amazonaws.com/pics/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "http://LocalHost:9000/"),
            url: "http://localhost:9000/pics/a%20b",
            shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "https://s3.example.com:443", isPathStyle: false),
            url: "https://pics.s3.example.com/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "http://s3.example.com:8080", isPathStyle: false),
            url: "http://pics.s3.example.com:8080/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "http://[::1]:9000", isPathStyle: false),
            url: "http://[::1]:9000/pics/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "https://[2001:DB8::7]"),
            url: "https://[2001:db8::7]/pics/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics", server: .init(endpoint: "http://127.0.0.1:80", isPathStyle: false),
            url: "http://127.0.0.1/pics/a%20b", shown: "s3://pics"),
        Good(
            text: "s3://pics/ä", server: .init(endpoint: "http://h"), url: "http://h/pics/%C3%A4/a%20b",
            shown: "s3://pics/ä"),
    ]

    @Test(arguments: good)
    func `A location leads to one URL`(_ good: Good) throws {
        let location = try BucketLocation(good.text, server: good.server)
        #expect(location.address.origin + (try location.path(of: "a b")) == good.url)
        #expect(location.description == good.shown)
    }

    static let bad: [(String, BucketLocation.Server)] = [
        ("", .init()), ("pics", .init()), ("https://pics", .init()), ("S3://pics", .init()), ("s3://", .init()),
        ("s3:///pics", .init()), ("s3://ab", .init()), ("s3://Pics", .init()), ("s3://pi_cs", .init()),
        ("s3://-pics", .init()), ("s3://pics-", .init()), ("s3://pi..cs", .init()),
        ("s3://" + String(repeating: "a", count: 64), .init()), ("s3://pics/../x", .init()), ("s3://pics/.", .init()),
        ("s3://pics/x?region=y", .init()), ("s3://pics#x", .init()), ("s3://pics/a\nb", .init()),
        ("s3://pics/" + String(repeating: "a", count: 513), .init()),
        ("s3://pics", .init(region: "")), ("s3://pics", .init(region: "a.evil.example/")),
        ("s3://pics", .init(endpoint: "s3.example.com")), ("s3://pics", .init(endpoint: "ftp://s3.example.com")),
        ("s3://pics", .init(endpoint: "https://s3.example.com/path")), ("s3://pics", .init(endpoint: "http://h:0")),
        ("s3://pics", .init(endpoint: "http://h:65536")),
        ("s3://pics", .init(endpoint: "http://h:99999999999999999999")),
        ("s3://pics", .init(endpoint: "http://h:+80")), ("s3://pics", .init(endpoint: "http://::1:80")),
        ("s3://pics", .init(endpoint: "http://[::1")), ("s3://pics", .init(endpoint: "http://[::g]:80")),
        ("s3://pics", .init(endpoint: "http://")), ("s3://pics", .init(endpoint: "http://a b")),
        ("s3://pics", .init(endpoint: "http://h?x")), ("s3://pics", .init(endpoint: "http://h\r\nX: y")),
    ]

    @Test(arguments: bad)
    func `A malformed location is refused`(_ text: String, _ server: BucketLocation.Server) throws {
        let error = #expect(throws: StorageError.self) { try BucketLocation(text, server: server) }
        #expect(error?.code == .invalid)
        #expect(error?.message.hasSuffix(".") == true)
    }

    @Test(arguments: [
        ("s3://KEY:s3cret@pics/x", BucketLocation.Server()), ("s3://KEY:s3cret/more@pics/x", BucketLocation.Server()),
        ("s3://pics", .init(endpoint: "https://KEY:s3cret@s3.example.com")),
    ])
    func `Keys in a location are refused, and not shown in the error`(_ text: String, _ server: BucketLocation.Server)
        throws
    {
        let error = #expect(throws: StorageError.self) { try BucketLocation(text, server: server) }
        #expect(error?.message.contains("s3cret") == false)
    }

    @Test(arguments: ["", "a/../b", ".", "a\u{0}b", "a\u{7F}", String(repeating: "a", count: 1_023)])
    func `A key that servers may take for another key is refused`(_ key: String) throws {
        let location = try BucketLocation("s3://pics/x")
        #expect(throws: StorageError.self) { try location.path(of: key) }
    }

    @Test func `An option overrides the environment, and the environment overrides the profile`() throws {
        try withTemporaryDirectory { folder in
            let path = folder.appending("config")
            try write(
                """
                [default]
                region = eu-west-1
                endpoint_url = http://profile
                s3 =
                    region = nested
                [profile other]
                region=ap-south-1 # near
                """, to: path)
            var environment = ["AWS_CONFIG_FILE": path.string]
            func server(region: String? = nil) throws -> BucketLocation.Server {
                let settings = CredentialSettings(environment: environment.value)
                return try BucketLocation.Server(settings: settings, region: region)
            }
            #expect(try server() == .init(endpoint: "http://profile", region: "eu-west-1"))
            environment["AWS_PROFILE"] = "other"
            #expect(try server() == .init(region: "ap-south-1"))
            environment["AWS_REGION"] = "sa-east-1"
            environment["AWS_ENDPOINT_URL_S3"] = "http://variable"
            #expect(try server() == .init(endpoint: "http://variable", region: "sa-east-1"))
            #expect(try server(region: "us-west-2").region == "us-west-2")
            environment = [:]
            #expect(try server() == .init())
        }
    }
}

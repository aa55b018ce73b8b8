import TestSupport
import Testing

@testable import ObjectStorage

/// Logs show no part of keys.
@Suite("Secrecy", .timeLimit(.minutes(5)))
struct SecrecyTests {
    private static let secret = "wJalrXUtnFEMI"
    private static let environment = [
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": secret + "1",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": secret + "2",
    ]

    private func shown(_ value: Any) -> String {
        var text = "\(value) \(String(reflecting: value)) "
        dump(value, to: &text)
        return text
    }

    @Test func `No description, mirror or dump has a secret in it`() throws {
        let credentials = try Credentials(keyID: "AKIDEXAMPLE", secret: Self.secret, token: Self.secret)
        let settings = CredentialSettings(environment: Self.environment.value)
        let signature = Signature(credentials: credentials, region: "r", time: .current)
        let parts = Signature.Parts(method: "GET", host: "h", path: "/", payload: BucketRequests.emptyHash)
        let query = signature.presignedQuery(parts, seconds: 1)
        let request = HTTPRequest(url: "http://h/a?\(query)", headers: signature.headers(parts))
        let bucket = Bucket(try BucketLocation("s3://bucket"), credentials: settings)
        for value in [credentials, settings, signature, request, bucket, CredentialSettings(credentials)] as [Any] {
            let text = shown(value)
            #expect(!text.contains(Self.secret), "\(type(of: value))")
            #expect(!text.contains("X-Amz-Signature") && !text.contains("Signature="), "\(type(of: value))")
        }
    }

    @Test(arguments: [
        LoopbackReply.status(500), .noReply, failing(403, "SignatureDoesNotMatch"), failing(301, "PermanentRedirect"),
        .garbage, .status(302, headers: [("Location", "http://h/?X-Amz-Security-Token=\(secret)")]),
    ])
    func `No error has a secret in it`(_ reply: LoopbackReply) async throws {
        let origin = try LoopbackOrigin { _ in reply }
        let settings = CredentialSettings(environment: Self.environment.value)
        let bucket = try bucket(at: origin, credentials: settings) { $0.tries = 2 }
        let error = try #require(await storageError { _ = try await bucket.bytes(of: "a") })
        #expect(!shown(error).contains(Self.secret))
        #expect(!shown(error).contains("Signature="))
        // It was there to be shown.
        #expect(origin.requests.first?.header("x-amz-security-token") == Self.secret + "1")
    }
}

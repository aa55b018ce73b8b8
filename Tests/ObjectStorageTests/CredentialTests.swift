import Core
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// Each source of credentials, and the order in which they are asked.
@Suite("Credentials", .timeLimit(.minutes(15)))
struct CredentialTests {
    private func fetched(_ environment: [String: String]) async throws -> [String?] {
        let sources = CredentialSources(
            settings: CredentialSettings(environment: environment.value), region: "us-east-1",
            client: HTTPClient(HTTPClient.Settings()))
        let found = try await sources.fetch()
        return [found.keyID, found.secret.value, found.token?.value, found.expiresAt.map { "\($0)" }]
    }

    private static let json = """
        {"Code":"Success","AccessKeyId":"ID","SecretAccessKey":"SECRET","Token":"TOKEN",
        "Expiration":"2026-11-26T09:30:00Z"}
        """
    private static let fromJSON = ["ID", "SECRET", "TOKEN", "1795685400000"]
    /// Leaves out the machine's own service, which a test must not ask.
    private static let noMachine = ["AWS_EC2_METADATA_DISABLED": "true"]

    @Test func `The keys of the environment come first`() async throws {
        let all = [
            "AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "SECRET", "AWS_SESSION_TOKEN": "TOKEN",
            "AWS_PROFILE": "none", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:1/",
        ]
        #expect(try await fetched(all) == ["ID", "SECRET", "TOKEN", nil])
    }

    @Test(arguments: [
        (["AWS_ACCESS_KEY_ID": "ID"], StorageError.Code.invalid), (["AWS_SECRET_ACCESS_KEY": "SECRET"], .invalid),
        (["AWS_ACCESS_KEY_ID": "I D", "AWS_SECRET_ACCESS_KEY": "SECRET"], .invalid),
        (["AWS_ACCESS_KEY_ID": "ID", "AWS_SECRET_ACCESS_KEY": "SEC\nRET"], .invalid),
        (["AWS_PROFILE": "none"], .invalid), (["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/"], .invalid),
        (["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost:80@192.0.2.1/"], .invalid),
        (["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://localhost.example/"], .invalid),
        (["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "@192.0.2.1/"], .invalid),
        (["AWS_WEB_IDENTITY_TOKEN_FILE": "/nonexistent", "AWS_ROLE_ARN": "arn"], .invalid), ([:], .denied),
    ])
    func `An unusable variable is an error without the variable's value`(
        _ set: [String: String], _ code: StorageError.Code
    ) async throws {
        let error = await storageError { _ = try await fetched(set.merging(Self.noMachine) { one, _ in one }) }
        #expect(error?.code == code)
        #expect(error?.message.contains("SEC") == false || error?.message.contains("AWS_SECRET") == true)
    }

    // MARK: - Profiles

    private static let profiles = """
        # keys
        [default]
        aws_access_key_id = ID1
          aws_secret_access_key=SECRET1
        [ other ]
        aws_access_key_id = ID2 ; a comment
        aws_secret_access_key = SE=CR#ET2
        aws_session_token = TOKEN2
        [half]
        aws_access_key_id = ID3
        [program]
        credential_process = /bin/keys
        """

    @Test(
        arguments: [
            (nil, ["ID1", "SECRET1", nil, nil]), ("default", ["ID1", "SECRET1", nil, nil]),
            ("other", ["ID2", "SE=CR#ET2", "TOKEN2", nil]), ("more", ["ID4", "SECRET4", nil, nil]),
        ] as [(String?, [String?])])
    func `A profile's keys are read from either file`(_ profile: String?, _ expected: [String?]) async throws {
        try await withTemporaryDirectory { home in
            let result = try await fetched(try Self.home(home, profile))
            #expect(result == expected)
        }
    }

    @Test(arguments: [("half", "aws_secret_access_key"), ("program", "credential_process"), ("none", "'none'")])
    func `A profile without keys is an error that names the reason`(_ profile: String, _ word: String) async throws {
        try await withTemporaryDirectory { home in
            let error = await storageError { _ = try await fetched(try Self.home(home, profile)) }
            #expect(error?.code == .invalid)
            #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
        }
    }

    @Test func `A folder as the file of profiles is an error`() async throws {
        try await withTemporaryDirectory { home in
            var environment = Self.noMachine
            environment["AWS_SHARED_CREDENTIALS_FILE"] = home.string
            let error = await storageError { _ = try await fetched(environment) }
            #expect(error?.code == .invalid)
        }
    }

    private static func home(_ home: FilePath, _ profile: String?) throws -> [String: String] {
        _ = try ChildProcess.run("mkdir", [home.appending(".aws").string])
        try write(profiles, to: home.appending(".aws").appending("credentials"))
        let config =
            "[profile more]\naws_access_key_id=ID4\naws_secret_access_key=SECRET4\n[other]\naws_access_key_id=X\n"
        try write(config, to: home.appending(".aws").appending("config"))
        var environment = noMachine
        environment["HOME"] = home.string
        environment["AWS_PROFILE"] = profile
        return environment
    }

    // MARK: - Roles

    private static let role = """
        <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
        <AssumeRoleWithWebIdentityResult><Credentials><SessionToken>TOKEN</SessionToken>
        <SecretAccessKey>SECRET</SecretAccessKey><Expiration>2026-11-26T09:30:00Z</Expiration>
        <AccessKeyId>ID</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>
        </AssumeRoleWithWebIdentityResponse>
        """

    @Test func `A role is assumed with the platform's token, which is in no URL`() async throws {
        let origin = try LoopbackOrigin(script: ["/": [.status(503), .ok(Array(Self.role.utf8))]])
        try await withTemporaryDirectory { folder in
            let file = folder.appending("token")
            try write("to.k/en\n", to: file)
            let result = try await fetched([
                "AWS_WEB_IDENTITY_TOKEN_FILE": file.string, "AWS_ROLE_ARN": "arn:aws:iam::1:role/r",
                "AWS_ENDPOINT_URL_STS": origin.url(""),
            ])
            #expect(result == Self.fromJSON)
        }
        #expect(origin.requests.map(\.method) == ["POST", "POST"])
        #expect(
            origin.requests.last.map { String(decoding: $0.body, as: UTF8.self) }
                == "Action=AssumeRoleWithWebIdentity&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr"
                + "&RoleSessionName=prefetch-worker&Version=2011-06-15&WebIdentityToken=to.k%2Fen")
    }

    @Test func `A refused role is an error with the service's reason and without the token`() async throws {
        let reason = "<Error><Code>InvalidIdentityToken</Code><Message>tokentext</Message></Error>"
        let origin = try LoopbackOrigin { _ in
            .status(400, body: Array("<ErrorResponse>\(reason)</ErrorResponse>".utf8))
        }
        try await withTemporaryDirectory { folder in
            let file = folder.appending("token")
            try write("tokentext", to: file)
            let error = await storageError {
                _ = try await fetched([
                    "AWS_WEB_IDENTITY_TOKEN_FILE": file.string, "AWS_ROLE_ARN": "arn",
                    "AWS_ENDPOINT_URL_STS": origin.url(""),
                ])
            }
            #expect(error?.code == .denied)
            #expect(error?.message.contains("InvalidIdentityToken") == true)
            #expect(error?.message.contains("tokentext") == false)
        }
    }

    @Test(arguments: [false, true])
    func `A container's role is fetched with its token`(_ isFile: Bool) async throws {
        let origin = try LoopbackOrigin(script: ["/v1?x=1": [.noReply, .ok(Array(Self.json.utf8))]])
        try await withTemporaryDirectory { folder in
            let file = folder.appending("token")
            try write("of a file\n", to: file)
            var environment = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/v1?x=1")]
            environment[isFile ? "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" : "AWS_CONTAINER_AUTHORIZATION_TOKEN"] =
                isFile ? file.string : "of a file"
            let result = try await fetched(environment)
            #expect(result == Self.fromJSON)
        }
        #expect(origin.requests.last?.header("authorization") == "of a file")
    }

    @Test(arguments: [
        "", "no JSON", "{}", "[]", "{\"AccessKeyId\":7}", "{\"AccessKeyId\":\"a\",\"SecretAccessKey\":\"\"}",
    ])
    func `An answer without credentials is an error`(_ text: String) async throws {
        let origin = try LoopbackOrigin { _ in .ok(Array(text.utf8)) }
        let error = await storageError {
            _ = try await fetched(["AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/")])
        }
        #expect(error != nil)
        #expect(origin.requests.count == 1)
    }

    @Test func `A machine's role is fetched with a session token`() async throws {
        let path = "/latest/meta-data/iam/security-credentials/"
        let origin = try LoopbackOrigin(script: [
            "/latest/api/token": [.ok(Array("session".utf8))], path: [.ok(Array("my role\nother".utf8))],
            path + "my": [.status(500), .ok(Array(Self.json.utf8))],
        ])
        let result = try await fetched(["AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url("")])
        #expect(result == Self.fromJSON)
        #expect(origin.requests.map(\.method) == ["PUT", "GET", "GET", "GET"])
        #expect(origin.requests[0].header("x-aws-ec2-metadata-token-ttl-seconds") == "21600")
        #expect(origin.requests.dropFirst().allSatisfy { $0.header("x-aws-ec2-metadata-token") == "session" })
    }

    @Test(arguments: [
        ["/latest/api/token": LoopbackReply.status(403)], ["/latest/api/token": .noReply],
        ["/latest/api/token": .ok(Array("session".utf8))], ["/latest/api/token": .ok(Array("a\r\nb: c".utf8))],
    ])
    func `A machine without a role has no credentials`(_ script: [String: LoopbackReply]) async throws {
        let origin = try LoopbackOrigin(script: script.mapValues { [$0] })
        let error = await storageError {
            _ = try await fetched(["AWS_EC2_METADATA_SERVICE_ENDPOINT": origin.url("")])
        }
        #expect(error?.code == .denied)
        #expect(error?.message.contains("There are no credentials") == true)
    }
}

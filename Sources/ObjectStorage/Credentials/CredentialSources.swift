internal import Core

/// Asks one source of credentials after another.
struct CredentialSources: Sendable {
    let settings: CredentialSettings
    /// The region where roles are assumed, unless the settings name one.
    let region: String
    let client: HTTPClient

    func fetch() async throws(StorageError) -> Credentials {
        if let found = try fixed() { return found }
        if let identity = settings.webIdentity { return try await role(identity) }
        if let found = try await profile() { return found }
        if let url = settings.containerURL { return try await container(url) }
        if let url = settings.metadataURL, let found = try await machine(url) { return found }
        throw StorageError(
            .denied,
            """
            There are no credentials for the bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write a \
            profile into ~/.aws/credentials, or give the machine a role.
            """)
    }

    private func fixed() throws(StorageError) -> Credentials? {
        switch (settings.keyID, settings.secret) {
        case (let id?, let secret?):
            return try Credentials(keyID: id, secret: secret.value, token: settings.token?.value)
        case (nil, nil): return nil
        default:
            throw StorageError(.invalid, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be set together.")
        }
    }

    private func profile() async throws(StorageError) -> Credentials? {
        guard let values = try settings.profiles.values() else { return nil }
        if let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] {
            return try Credentials(keyID: id, secret: secret, token: values["aws_session_token"])
        }
        if let file = values["web_identity_token_file"], let role = values["role_arn"] {
            let session = values["role_session_name"] ?? CredentialSettings.WebIdentity.session
            return try await self.role(CredentialSettings.WebIdentity(file: file, role: role, session: session))
        }
        let name = settings.profiles.profile ?? "default"
        if let other = Self.unsupported.first(where: { values[$0] != nil }) {
            throw StorageError(
                .invalid, "The profile '\(name)' gets its keys by '\(other)', which is not supported; it needs keys.")
        }
        guard settings.profiles.profile == nil else {
            throw StorageError(.invalid, "The profile '\(name)' has no aws_access_key_id and aws_secret_access_key.")
        }
        return nil
    }

    /// Settings by which a profile gets its keys from a program, a login or another profile.
    private static let unsupported = [
        "credential_process", "sso_session", "sso_start_url", "login_session", "source_profile", "credential_source",
        "role_arn",
    ]

    // MARK: - Roles

    /// https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html
    private func role(_ identity: CredentialSettings.WebIdentity) async throws(StorageError) -> Credentials {
        let service = settings.tokenService ?? AmazonHost.origin(service: "sts", region: settings.region ?? region)
        guard let (address, path) = HTTPAddress.split(service) else {
            throw StorageError(.invalid, "The address of the service for roles (AWS_ENDPOINT_URL_STS) is no URL.")
        }
        // Read each time: the platform writes a new one before it runs out.
        let token = try Self.token(ofFile: identity.file)
        let query = Signature.encoded([
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", identity.role),
            ("RoleSessionName", identity.session), ("WebIdentityToken", token),
        ])
        let answer = try await ask(
            HTTPRequest(
                method: "POST", url: address.origin + path,
                headers: ["Content-Type: application/x-www-form-urlencoded"], body: .bytes(Array(query.utf8)),
                timeouts: Self.serviceTimeouts),
            "the role's credentials")
        let found = XMLReader.read(answer.body)?.first("AssumeRoleWithWebIdentityResult", "Credentials")
        return try FetchedCredentials(
            id: found?["AccessKeyId"], secret: found?["SecretAccessKey"], token: found?["SessionToken"],
            end: found?["Expiration"]
        ).credentials()
    }

    /// https://docs.aws.amazon.com/sdkref/latest/guide/feature-container-credentials.html
    private func container(_ url: String) async throws(StorageError) -> Credentials {
        guard let (address, path) = HTTPAddress.split(url), address.scheme == .https || Self.isNear(address) else {
            throw StorageError(
                .invalid, "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of the container's host.")
        }
        var token = settings.containerToken?.value
        if let file = settings.containerTokenFile { token = try Self.token(ofFile: file) }
        if let token, !token.utf8.allSatisfy({ (32..<127).contains($0) }) {
            throw StorageError(.invalid, "AWS_CONTAINER_AUTHORIZATION_TOKEN has characters that no header may have.")
        }
        let request = HTTPRequest(
            url: address.origin + path, headers: token.map { ["Authorization: \($0)"] } ?? [],
            avoidsProxy: Self.isNear(address), timeouts: Self.serviceTimeouts)
        return try FetchedCredentials(json: try await ask(request, "the container's credentials").body).credentials()
    }

    /// Whether requests to the address don't leave the machine: loopback and the addresses of container hosts.
    private static func isNear(_ address: HTTPAddress) -> Bool {
        address.isLoopback || ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"].contains(address.host)
    }

    /// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html
    ///
    /// - Returns: nil if there is no metadata service, as outside of EC2, or if the machine has no role.
    private func machine(_ base: String) async throws(StorageError) -> Credentials? {
        guard let (address, _) = HTTPAddress.split(base) else {
            throw StorageError(.invalid, "AWS_EC2_METADATA_SERVICE_ENDPOINT is no URL.")
        }
        let life = "X-aws-ec2-metadata-token-ttl-seconds: 21600"
        var request = HTTPRequest(
            method: "PUT", url: "\(address.origin)/latest/api/token", headers: [life], body: .bytes([]))
        (request.avoidsProxy, request.timeouts) = (true, Self.machineTimeouts)
        let token: String
        do throws(ExchangeFailure) {
            let answer = try await client.answer(to: request)
            guard answer.status == 200, let text = Self.printable(answer.body) else { return nil }
            token = text
        } catch {
            // Where there is no metadata service, nothing answers at this address.
            guard error.kind == .cancelled else { return nil }
            throw StorageError(.cancelled, "The task was cancelled.")
        }
        request = HTTPRequest(url: "\(address.origin)/latest/meta-data/iam/security-credentials/")
        (request.headers, request.avoidsProxy) = (["X-aws-ec2-metadata-token: \(token)"], true)
        request.timeouts = Self.machineTimeouts
        let roles = try await ask(request, "the machine's role", orNone: true)
        guard roles.status == 200, let name = Self.printable(roles.body) else { return nil }
        request.url += PercentEncoding.query(name)
        return try FetchedCredentials(json: try await ask(request, "the machine's credentials").body).credentials()
    }

    private static let serviceTimeouts = HTTPRequest.Timeouts(connect: 5_000, silence: 10, whole: 20_000)
    private static let machineTimeouts = HTTPRequest.Timeouts(connect: 1_000, silence: 5, whole: 5_000)

    /// The first word of a short answer.
    private static func printable(_ body: [UInt8]) -> String? {
        let word = body.prefix { $0 > 32 && $0 < 127 }
        return (1...1_000).contains(word.count) ? String(decoding: word, as: UTF8.self) : nil
    }

    // MARK: - Requests

    /// - Parameter orNone: whether a 404 is an answer.
    private func ask(
        _ request: HTTPRequest, _ what: String, orNone: Bool = false,
    ) async throws(StorageError) -> HTTPAnswer {
        let policy = RequestRetries(tries: 3, shortestPause: 100, longestPause: 2_000)
        let outcome = try await policy.run { () async throws(StorageError) -> RequestRetries.Attempt<HTTPAnswer> in
            let answer: HTTPAnswer
            do throws(ExchangeFailure) {
                answer = try await client.answer(to: request)
            } catch {
                if error.kind == .cancelled { throw StorageError(.cancelled, "The task was cancelled.") }
                guard error.kind == .transient else {
                    throw StorageError(.invalid, "The request for \(what) fails: \(error.message).")
                }
                return .again(reason: error.message, after: nil)
            }
            if answer.status == 200 || (orNone && answer.status == 404) { return .done(answer) }
            let code = XMLReader.read(answer.body)?.first("Error")?["Code"].map { " (\($0))" } ?? ""
            if answer.status == 429 || answer.status >= 500 {
                return .again(reason: "it was answered \(answer.status)\(code)", after: nil)
            }
            throw StorageError(.denied, "The request for \(what) was answered \(answer.status)\(code).")
        }
        switch outcome {
        case .done(let answer): return answer
        case .gaveUp(let reason): throw StorageError(.unreachable, "The request for \(what) fails: \(reason).")
        }
    }

    private static func token(ofFile path: String) throws(StorageError) -> String {
        do {
            return String(trimming: String(decoding: try SmallFile.read(path), as: UTF8.self)[...])
        } catch {
            throw StorageError(.invalid, "The file with the token, '\(path)', can't be read: \(error).")
        }
    }
}

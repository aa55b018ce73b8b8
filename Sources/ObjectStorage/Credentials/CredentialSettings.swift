/// Where credentials come from, asked in the order that Amazon's tools have: the environment, a token of the platform
/// (web identity), a profile, the container's role, the machine's role.
public struct CredentialSettings: Sendable {
    var keyID: String?
    var secret: Secret?
    var token: Secret?

    var profiles = ProfileFiles()

    /// Of AWS_REGION or AWS_DEFAULT_REGION.
    var region: String?
    /// Of AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL.
    var endpoint: String?

    var webIdentity: WebIdentity?
    /// The service where a role is assumed; nil for `https://sts.REGION.amazonaws.com`.
    var tokenService: String?

    var containerURL: String?
    var containerToken: Secret?
    var containerTokenFile: String?

    /// Where machines ask for their role; nil to leave it out.
    var metadataURL: String?

    static let machineMetadata = "http://169.254.169.254"
    private static let containerHost = "http://169.254.170.2"

    /// A file with a token of the platform, and the role that is assumed with it.
    struct WebIdentity: Hashable, Sendable {
        var file: String
        var role: String
        var session: String
    }

    /// These keys and no other source.
    public init(_ credentials: Credentials) {
        keyID = credentials.keyID
        secret = credentials.secret
        token = credentials.token
    }

    /// The sources that the usual variables name. Nothing is read or asked before the first request.
    ///
    /// - Parameter value: the value of a variable of the environment.
    public init(environment value: (String) -> String?) {
        func known(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        keyID = known("AWS_ACCESS_KEY_ID")
        secret = known("AWS_SECRET_ACCESS_KEY").map(Secret.init)
        token = known("AWS_SESSION_TOKEN").map(Secret.init)
        let home = known("HOME")
        profiles = ProfileFiles(
            credentials: known("AWS_SHARED_CREDENTIALS_FILE") ?? home.map { "\($0)/.aws/credentials" },
            config: known("AWS_CONFIG_FILE") ?? home.map { "\($0)/.aws/config" },
            profile: known("AWS_PROFILE"))
        region = known("AWS_REGION") ?? known("AWS_DEFAULT_REGION")
        endpoint = known("AWS_ENDPOINT_URL_S3") ?? known("AWS_ENDPOINT_URL")
        if let file = known("AWS_WEB_IDENTITY_TOKEN_FILE"), let role = known("AWS_ROLE_ARN") {
            webIdentity = WebIdentity(
                file: file, role: role, session: known("AWS_ROLE_SESSION_NAME") ?? WebIdentity.session)
        }
        tokenService = known("AWS_ENDPOINT_URL_STS") ?? known("AWS_ENDPOINT_URL")
        containerURL =
            known("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map { Self.containerHost + $0 }
            ?? known("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        containerToken = known("AWS_CONTAINER_AUTHORIZATION_TOKEN").map(Secret.init)
        containerTokenFile = known("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if known("AWS_EC2_METADATA_DISABLED")?.lowercased() != "true" {
            metadataURL = known("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? Self.machineMetadata
        }
    }
}

extension CredentialSettings.WebIdentity {
    /// The name that a role's sessions get, where none is set.
    static let session = "prefetch-worker"
}

/// Amazon's own hosts.
enum AmazonHost {
    /// `https://s3.eu-central-1.amazonaws.com`
    static func origin(service: String, region: String) -> String {
        "https://\(service).\(region).\(region.hasPrefix("cn-") ? "amazonaws.com.cn" : "amazonaws.com")"
    }

    /// Whether a text may be a region's name; it becomes part of a host and of signatures.
    static func isRegion(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.first != "-"
            && text.utf8.allSatisfy { ($0 &- 48) < 10 || ($0 &- 97) < 26 || ($0 &- 65) < 26 || $0 == 45 || $0 == 95 }
    }
}

import Core
import SystemPackage
import TestSupport
import Testing

@testable import ObjectStorage

/// Over TLS, with nginx in place of a bucket.
@Suite("TLS", .enabled(if: Nginx.isAvailable, "nginx or openssl is not installed."), .timeLimit(.minutes(5)))
struct SecureTests {
    private func withNginx(_ body: (Nginx) async throws -> Void) async throws {
        try await withTemporaryDirectory { folder in
            try await withTemporaryDirectory { scratch in
                _ = try ChildProcess.run("chmod", ["755", folder.string])
                _ = try ChildProcess.run("mkdir", [folder.appending("bucket").string])
                try write("secure", to: folder.appending("bucket").appending("a"))
                _ = try ChildProcess.run("chmod", ["-R", "a+rX", folder.string])
                let nginx = try Nginx(serving: folder, scratch: scratch)
                try await body(nginx)
                nginx.stop()
            }
        }
    }

    private func bucket(_ nginx: Nginx, host: String = "127.0.0.1", authorities: String?) throws -> Bucket {
        var environment: [String: String] = [:]
        environment["AWS_CA_BUNDLE"] = authorities
        let server = BucketLocation.Server(endpoint: "https://\(host):\(nginx.httpsPort)")
        var options = BucketOptions(environment: environment.value)
        (options.shortestPause, options.longestPause) = (1, 2)
        return Bucket(
            try BucketLocation("s3://bucket", server: server), credentials: testCredentials, options: options)
    }

    @Test func `The authorities of AWS_CA_BUNDLE are trusted, and no others`() async throws {
        try await withNginx { nginx in
            let trusted = try bucket(nginx, authorities: nginx.caFile.string)
            #expect(try await trusted.bytes(of: "a") == Array("secure".utf8))
            let untrusted = try bucket(nginx, authorities: nil)
            let error = await storageError { _ = try await untrusted.bytes(of: "a") }
            #expect(error?.code == .refused)
            #expect(error?.message.contains("AWS_CA_BUNDLE") == true)
        }
    }

    @Test func `A certificate of another host and a file without certificates are refused`() async throws {
        try await withNginx { nginx in
            // The certificate is for 127.0.0.1 and localhost.
            let other = try bucket(nginx, host: "127.0.0.2", authorities: nginx.caFile.string)
            let error = await storageError { _ = try await other.bytes(of: "a") }
            #expect(error != nil)
            let missing = try bucket(nginx, authorities: "/nonexistent/authorities.pem")
            #expect(await storageError { _ = try await missing.bytes(of: "a") }?.code == .refused)
        }
    }
}

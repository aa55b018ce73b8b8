@testable import Core
@testable import ObjectStorage

// What an S3 server and the files of its credentials say.

extension FuzzTarget {
    static let storageTargets = [storageAnswers, credentials]

    private static let bucket = try? Bucket(
        BucketLocation("s3://bucket/prefix"), credentials: CredentialSettings(environment: { _ in nil }))

    private static let storageAnswers = FuzzTarget(
        name: "s3-answers",
        seeds: [
            """
            <ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>\
            <EncodingType>url</EncodingType><Contents><Key>prefix%2Fa%20b</Key><Size>9223372036854775807</Size>\
            <LastModified>2026-01-02T03:04:05.678Z</LastModified></Contents></ListBucketResult>
            """,
            "<Error><Code>NoSuchKey</Code><Message>&lt;a&gt; &#65;</Message></Error>",
            "<DeleteResult><Error><Key>a</Key><Code>AccessDenied</Code></Error></DeleteResult>",
            "<!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>", "2026-01-02T03:04:05Z",
            "Thu, 26 Nov 2026 20:20:08 GMT", "a%2Fb%zz%",
        ].map { Array($0.utf8) }
    ) { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        _ = (WallTime(timestamp: text), WallTime(httpDate: text), PercentEncoding.decoded(text))
        guard let answer = XMLReader.read(Array(bytes)) else { return }
        _ = bucket?.page(answer)
        for error in answer.all("Error") { _ = (error["Code"], error["Message"], error["Key"]) }
    }

    private static let credentials = FuzzTarget(
        name: "s3-credentials",
        seeds: [
            "[default]\naws_access_key_id = A\naws_secret_access_key=B # no comment\n[profile x]\nregion = eu\n",
            "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":\"B\",\"Token\":\"C\",\"Expiration\":\"2026-01-02T03:04:05Z\"}",
        ].map { Array($0.utf8) }
    ) { bytes in
        _ = ProfileFiles.section("default", of: String(decoding: bytes, as: UTF8.self))
        _ = ProfileFiles.section("profile x", of: String(decoding: bytes, as: UTF8.self))
        _ = try? FetchedCredentials(json: Array(bytes))
    }
}

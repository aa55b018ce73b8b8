import TestSupport
import Testing

/// The client and SeaweedFS, which judges `x-amz-checksum-sha256` where Ceph's gateway judges `x-amz-content-sha256`.
///
/// It answers some odd keys with an internal error, so these are left out. The cache's own keys are letters and digits.
@Suite(
    "SeaweedFS", .enabled(if: S3Server.hasSeaweedFS, Comment(rawValue: S3Server.missingSeaweedFS)),
    .timeLimit(.minutes(15)))
struct SeaweedFSTests {
    private let contract: BucketContract

    init() async throws { contract = BucketContract(server: try await S3Server.runningSeaweedFS.value) }

    @Test(arguments: [0, 1, 5_000_000])
    func `A stored object is read again`(_ size: Int) async throws { try await contract.readsWhatWasStored(size: size) }

    @Test func `Bytes of another hash are refused and not stored`() async throws {
        try await contract.refusesBytesOfAnotherHash()
    }

    @Test func `Only one of eight concurrent stores of an absent object succeeds`() async throws {
        try await contract.letsOneOfEightStore()
    }

    @Test func `More keys than a page has are listed in order, and deleted`() async throws {
        try await contract.listsAndDeletesManyKeys()
    }

    @Test func `Wrong keys are denied, and a missing bucket is an error`() async throws {
        try await contract.deniesWrongKeys()
    }
}

internal import Core
internal import Hashing

// Lists and deletes objects, and creates the bucket.
extension Bucket {
    /// Deletes objects, whether they are there or not, with a request for each thousand.
    ///
    /// - Throws: the first error. Earlier requests have deleted their objects then, objects of the failed request may
    ///   be deleted, and later requests are not sent.
    public func delete(_ keys: [String]) async throws(StorageError) {
        var rest = keys[...]
        while !rest.isEmpty {
            let group = rest.prefix(Self.maxDeleted)
            rest = rest.dropFirst(group.count)
            try await delete(group)
        }
    }

    /// S3's maximum for one request.
    private static let maxDeleted = 1_000

    private func delete(_ keys: ArraySlice<String>) async throws(StorageError) {
        var names = ""
        for key in keys { names += "<Object><Key>\(XMLElement.escaped(try location.full(key)))</Key></Object>" }
        let body = Array("<Delete><Quiet>true</Quiet>\(names)</Delete>".utf8)
        let hash = BlobHash(digest: SHA256.digest(of: body))
        // S3 wants a checksum of a body that says what to delete.
        let headers = ["x-amz-checksum-sha256": Self.checksum(hash), "content-type": "application/xml"]
        let purpose = "delete \(keys.count) objects"
        let answer = try await requests.send(
            BucketRequests.Call(
                method: "POST", query: [("delete", "")], headers: headers, body: .bytes(body), payload: hash.hex,
                purpose: purpose)
        ).answer
        try requests.check(answer, purpose)
        guard let result = XMLReader.read(answer.body), result.name == "DeleteResult" else {
            throw StorageError(.refused, "\(location) can't \(purpose): the answer is not a DeleteResult.")
        }
        let failed = result.all("Error").filter { $0["Code"] != "NoSuchKey" }
        guard let first = failed.first else { return }
        let reason = [first["Code"], first["Message"]].compactMap { $0?.isEmpty == false ? $0 : nil }
        throw StorageError(
            failed.allSatisfy { $0["Code"] == "AccessDenied" } ? .denied : .refused,
            """
            \(location) can't delete \(failed.count) of \(keys.count) objects, '\(first["Key"] ?? "")' among them \
            (\(reason.joined(separator: ": "))).
            """)
    }

    /// Some of the objects.
    public struct Page: Hashable, Sendable {
        /// In the order of their keys' bytes.
        public let objects: [Info]
        /// For the next page; nil behind the last one.
        public let next: String?
    }

    /// A thousand objects at most.
    ///
    /// - Parameters:
    ///   - prefix: what their keys begin with.
    ///   - token: ``Page/next`` of the page before.
    public func list(_ prefix: String = "", continuing token: String? = nil) async throws(StorageError) -> Page {
        // Encoded, since XML can't hold every key that others may have stored.
        var query = [("list-type", "2"), ("encoding-type", "url"), ("prefix", location.prefix + prefix)]
        if let token { query.append(("continuation-token", token)) }
        let purpose = "list its objects"
        let answer = try await requests.send(BucketRequests.Call(query: query, purpose: purpose)).answer
        try requests.check(answer, purpose)
        // A proxy's answer must not look like an empty bucket.
        guard let listing = XMLReader.read(answer.body), listing.name == "ListBucketResult",
            let page = page(listing), page.next != token || token == nil
        else {
            throw StorageError(.refused, "\(location) can't \(purpose): the answer is no whole listing.")
        }
        return page
    }

    func page(_ listing: XMLElement) -> Page? {
        let isEncoded = listing["EncodingType"] == "url"
        var objects: [Info] = []
        for element in listing.all("Contents") {
            guard let text = element["Key"], let key = isEncoded ? PercentEncoding.decoded(text) : text,
                let size = element["Size"].flatMap({ Int64($0) }), size >= 0
            else { return nil }
            guard key.utf8.starts(with: location.prefix.utf8) else { continue }
            let short = String(decoding: key.utf8.dropFirst(location.prefix.utf8.count), as: UTF8.self)
            // The prefix itself may be an object: consoles make such folders.
            guard !short.isEmpty else { continue }
            objects.append(
                Info(key: short, size: size, modified: element["LastModified"].flatMap { WallTime(timestamp: $0) }))
        }
        switch (listing["IsTruncated"], listing["NextContinuationToken"]) {
        case ("true", let next?) where !next.isEmpty: return Page(objects: objects, next: next)
        case ("false", _): return Page(objects: objects, next: nil)
        default: return nil
        }
    }

    /// Makes the bucket, if it isn't ours already.
    public func make() async throws(StorageError) {
        var call = BucketRequests.Call(method: "PUT", body: .bytes([]), purpose: "make the bucket")
        if location.isAmazons, location.region != BucketLocation.Server.usualRegion {
            // Without this element Amazon makes the bucket in us-east-1, whichever region's host gets the request.
            let place = "<LocationConstraint>\(location.region)</LocationConstraint>"
            let body = Array("<CreateBucketConfiguration>\(place)</CreateBucketConfiguration>".utf8)
            call.body = .bytes(body)
            call.payload = BlobHash(digest: SHA256.digest(of: body)).hex
        }
        let answer = try await requests.send(call).answer
        if answer.status == 409, XMLReader.read(answer.body)?["Code"] == "BucketAlreadyOwnedByYou" { return }
        try requests.check(answer, call.purpose)
    }
}

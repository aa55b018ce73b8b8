internal import Core
internal import Download
internal import Jobs

// Rules of an item and its job for sources and failures.

extension ItemEnding {
    var failure: Failure? {
        switch self {
        case .failed(let failure), .retry(_, let failure, _), .fallBack(let failure): failure
        case .done, .blacklisted, .wait, .release: nil
        }
    }

    /// Replaces a final failure by the item's next fallback, if it has one.
    func orFallBack(of item: ClaimedItem) -> ItemEnding {
        guard item.own?.hasNext == true else { return self }
        switch self {
        case .failed(let failure) where failure.failureClass.isOfItem && failure.failureClass != .invalidItem:
            return .fallBack(failure)
        case .blacklisted(let entry):
            var failure = Failure(entry.failure, "On the blacklist: \(entry.message ?? entry.failure.rawValue)")
            failure.hasAsked = false
            return .fallBack(failure)
        default: return self
        }
    }
}

extension ClaimedItem {
    /// Whether a source has the item's own checksum and size.
    func accepts(_ source: SourceRecord) -> Bool {
        own?.accepts(hash: source.hash, size: source.size) ?? true
    }
}

extension JobPlan {
    /// - Throws: `filtered` if the known facts of the source fail the job's filter.
    func check(_ source: SourceRecord) throws(Failure) {
        let filter = settings.filter
        guard !filter.isEmpty else { return }
        var objection = filter.objection(bytes: source.size)
        if objection == nil, let width = source.width, let height = source.height {
            objection = filter.objection(width: width, height: height)
        }
        if let objection { throw Failure(.filtered, objection) }
    }

    /// Whether a truncated download of a good picture would fail in the same way.
    func mayBeCut(_ failure: Failure, _ item: ClaimedItem, _ source: SourceRecord) -> Bool {
        switch failure.failureClass {
        case .truncated: true
        case .checksum: item.own?.size.map { source.size < $0 } ?? true
        case .filtered: settings.filter.bytes.map { source.size < $0.lowerBound } ?? false
        default: false
        }
    }
}

extension OwnColumns {
    /// - Throws: `checksum`, with both values, if they are not the item's own.
    func check(hash: String, size: Int64) throws(Failure) {
        guard !accepts(hash: hash, size: size) else { return }
        if let wanted = self.size, wanted != size {
            throw Failure(.checksum, "The body has \(size) bytes, and the item's size is \(wanted).")
        }
        throw Failure(.checksum, "The body's SHA-256 is \(hash), and the item's sha256 is \(sha256 ?? "").")
    }
}

extension Failure {
    var unlisted: Failure {
        var failure = self
        failure.isListed = false
        return failure
    }
}

extension JobPlan {
    /// Whether a failure depends on this job's own headers or options, so that another job's request may succeed.
    func isAlone(with failure: Failure, _ request: DownloadRequest) -> Bool {
        if hasOwnHeaders, failure.failureClass.dependsOnCredentials { return true }
        guard failure.failureClass == .notAnImage, let response = failure.response else { return false }
        return !request.accepts(contentType: response.contentType)
    }
}

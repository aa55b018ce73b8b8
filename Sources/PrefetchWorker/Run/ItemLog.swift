internal import Core
internal import Jobs
internal import Logging

extension RunStatistics {
    /// Counts an item that has ended, and writes its line of the log.
    func note(_ ending: ItemEnding, of item: ClaimedItem, _ measure: ItemMeasure, _ logger: Logger) {
        count(ending, measure)
        logger.note(ending, of: item, measure)
    }

    /// Counts an item that failed at its claim, and writes its line of the log.
    func noteRefused(_ item: Int64, of job: JobID, _ failure: Failure, _ logger: Logger) {
        saw(jobs: [job])
        count(.failed(failure))
        logger.info(
            "Item failed.",
            metadata: [
                "job": "\(job)", "item": "\(item)", "class": "\(failure.failureClass.rawValue)",
                "reason": "\(failure.message)",
            ])
    }
}

/// A log line for each item that ends: at the level info for a failure and a later try, at debug for a picture.
extension Logger {
    fileprivate func note(_ ending: ItemEnding, of item: ClaimedItem, _ measure: ItemMeasure) {
        switch ending {
        case .done(let completion):
            debug(completion.isCached ? "Item cached." : "Item done.", metadata: metadata(of: item, measure))
        case .failed(let failure):
            info(
                "Item failed.",
                metadata: metadata(of: item, measure, class: failure.failureClass, reason: failure.message))
        case .blacklisted(let entry):
            info(
                "Item not fetched: its URL is on the blacklist.",
                metadata: metadata(of: item, measure, class: entry.failure))
        case .retry(_, let failure, _):
            info(
                "Item will be tried again.",
                metadata: metadata(of: item, measure, class: failure.failureClass, reason: failure.message))
        case .wait, .fallBack, .release:
            debug("Item goes back to the queue.", metadata: metadata(of: item, measure))
        }
    }

    private func metadata(
        of item: ClaimedItem, _ measure: ItemMeasure, class failure: FailureClass? = nil, reason: String? = nil,
    ) -> Metadata {
        var metadata: Metadata = [
            "job": "\(item.job)", "item": "\(item.id)", "url": "\(Redaction().shown(item.url))",
        ]
        for (stage, time) in measure.stages {
            metadata["\(stage)_ms"] = time.map { "\($0.milliseconds)" }
        }
        metadata["class"] = failure.map { "\($0.rawValue)" }
        metadata["reason"] = reason.map { "\($0)" }
        return metadata
    }
}

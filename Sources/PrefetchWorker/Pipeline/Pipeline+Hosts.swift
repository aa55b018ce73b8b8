internal import Download
internal import Jobs

extension Pipeline {
    /// How long an item waits in memory for a host that is left alone.
    static let longestWait = Duration.seconds(5)

    /// The end of an item whose host is left alone for longer than it pays to keep the item in memory for; nil otherwise.
    ///
    /// To wait because the origin said so costs no try. To wait for a host that can't be reached does: else the items of
    /// one that is gone for good would wait for ever.
    ///
    /// - Parameter host: where a redirect has led; nil for the URL's own.
    func blocked(_ item: ClaimedItem, at host: String? = nil) -> ItemResult? {
        guard downloader.blocksHosts else { return nil }
        let host = host ?? self.host(of: item.url)
        if let silence = downloader.givenUp(host), downloader.blocked(host) != nil { return givenUp(host, silence) }
        guard let (instant, reason) = downloader.blocked(host) else { return nil }
        let left = ContinuousClock.now.duration(to: instant)
        guard left > Self.longestWait else { return nil }
        switch reason {
        case .asked:
            return .ending(
                .wait(
                    until: settings.now() + left.milliseconds, host: host,
                    reason: "\(host) asked to be left alone for a while."))
        case .parked:
            let failure = FetchFailure(
                failure: .connect, message: "\(host) could not be reached several times in a row, and is left alone.",
                retryAfter: left.milliseconds, host: host, hasAsked: false)
            return decided(failure, of: item.url, attempts: item.attempts, isFetched: false)
        }
    }

    /// The end of an item whose host has never answered and has had its time. It isn't listed: the host may come back.
    private func givenUp(_ host: String, _ silence: HostSilence) -> ItemResult {
        var record = FailureRecord(
            FailureClass(silence.failure),
            "\(host) has not answered for \(silence.since.components.seconds) s (--host-patience). \(silence.message)")
        record.host = host
        record.hasAsked = false
        record.isListed = false
        return .failed(record)
    }

    /// The host that is asked for a URL first.
    func host(of url: String) -> String { Downloader.host(of: url) ?? URLText.host(url) }

    /// The end of an item that made room for those of other hosts.
    func crowded(_ host: String) -> ItemResult {
        .ending(
            .wait(
                until: settings.now() + crowds.delay(of: host), host: host,
                reason: "Many others wait for \(host), which is busy."))
    }
}

/// How many requests a host gets at once. The window shrinks after an answer of 429 or 503, and grows by one after each
/// round of other answers.
///
/// If one URL answers 503 repeatedly while others of its host are answered, that URL is at fault. So a second 503 of
/// the same URL does not count. The window falls below one, to one request every few seconds, only if the host asked
/// for it (429, `Retry-After`) or answers most URLs with 503.
struct HostWindow {
    /// The narrowed window; nil for the full limit.
    private(set) var narrowed: Double?
    private var narrowedAt: ContinuousClock.Instant?
    /// Whether the host asked for less (429, `Retry-After`).
    private var wasTold = false
    /// The last answers to URLs that were requested for the first time, the latest in the lowest bit; 1 is a 503.
    private var answers: UInt16 = 0
    private var count = 0

    /// The narrowest window: a request starts 4 s after the one before it.
    static let narrowest = 0.2

    /// Whether most of its last answers were 503.
    var isMostlyUnavailable: Bool { answers.nonzeroBitCount >= 3 && answers.nonzeroBitCount * 2 > count }

    mutating func restore(_ width: Double) {
        if width.isFinite { narrowed = max(Self.narrowest, width) }
    }

    /// Additive increase: the window grows by one after as many answers as it is wide.
    mutating func widen(upTo limit: Double) {
        note(isUnavailable: false)
        guard let old = narrowed else { return }
        let isHeldBelowOne = wasTold || isMostlyUnavailable
        let wider = max(old + (old >= 1 ? 1 / old : 0.25), isHeldBelowOne ? 0 : 1)
        if wider >= 1 { wasTold = false }
        narrowed = wider >= limit ? nil : wider
    }

    mutating func unavailable(limit: Double, start: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        note(isUnavailable: true)
        narrow(limit: limit, least: isMostlyUnavailable ? Self.narrowest : 1, start: start, now: now)
    }

    /// The host asked for less.
    mutating func tooMuch(limit: Double, start: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        wasTold = true
        narrow(limit: limit, least: Self.narrowest, start: start, now: now)
    }

    /// Multiplicative decrease, once for all requests that were running together.
    private mutating func narrow(
        limit: Double, least: Double, start: ContinuousClock.Instant, now: ContinuousClock.Instant,
    ) {
        if let narrowedAt, start < narrowedAt { return }
        let width = min(narrowed ?? limit, limit)
        narrowed = min(width, max(least, width / 2))
        narrowedAt = now
    }

    private mutating func note(isUnavailable: Bool) {
        answers = answers << 1 | (isUnavailable ? 1 : 0)
        count = min(count + 1, UInt16.bitWidth)
    }
}

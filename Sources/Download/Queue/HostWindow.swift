/// How many requests a host takes at once, as its answers tell: fewer after it said that it is too much (429, 503), one
/// more after each round of others.
///
/// One URL that answers 503 again and again while its neighbours are answered is at fault itself, so a second 503 of
/// the same URL tells nothing. It falls below one, to one request every few seconds, only where the host said so (429,
/// `Retry-After`) or answers most URLs with 503.
struct HostWindow {
    /// Nil for as many as the limit allows.
    private(set) var narrowed: Double?
    private var narrowedAt: ContinuousClock.Instant?
    /// Whether the host said so itself, and not just its answers.
    private var wasTold = false
    /// The last answers to URLs that were asked for the first time, the latest in the lowest bit; 1 is a 503.
    private var answers: UInt16 = 0
    private var count = 0

    /// The narrowest window: a request every 5 s.
    static let narrowest = 0.2

    /// Whether most of its last answers were 503.
    var isMostlyUnavailable: Bool { answers.nonzeroBitCount >= 3 && answers.nonzeroBitCount * 2 > count }

    mutating func restore(_ width: Double) {
        if width.isFinite { narrowed = max(Self.narrowest, width) }
    }

    /// Additive up: one more after as many answers as the window is wide.
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

    /// The host said that it is too much.
    mutating func tooMuch(limit: Double, start: ContinuousClock.Instant, now: ContinuousClock.Instant) {
        wasTold = true
        narrow(limit: limit, least: Self.narrowest, start: start, now: now)
    }

    /// Multiplicative down, once for all requests that were under way together.
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

import Jobs

/// A job in one line: its name, a bar, how much has ended, rates, and the time left where it is known.
struct JobLine {
    let job: JobProgress
    let rate: JobRates.Rate
    /// Whether the items of this job wait for hosts, so that the rate does not tell the time left.
    let waits: Bool

    private enum Part: Int {
        // A narrow terminal leaves out the part with the highest number first.
        case count, left, failed, rate, percent, bar, bytes, cached, done
    }

    /// - Parameter width: maximum columns of the line. If this is less than 20, the line may be wider.
    func text(width: Int, _ colours: Colours) -> String {
        let name = Terminal.safe(job.name ?? "job \(job.job)")
        var parts = Set([Part.count, .left, .failed, .rate, .percent, .bar, .bytes, .cached, .done])
        var title = TextWidth.prefix(name, 24)
        for least in stride(from: Part.done.rawValue, through: 0, by: -1) {
            if columns(parts, title) <= width { break }
            if let part = Part(rawValue: least) { parts.remove(part) }
            title = TextWidth.prefix(name, max(8, width / 3))
        }
        let shown =
            [title, bar(parts, colours)].filter { !$0.isEmpty }
            + texts(parts).map { text, part in
                part == .failed ? colours.red(text) : part == .rate || part == .bytes ? colours.dim(text) : text
            }
        return shown.joined(separator: " ")
    }

    private func columns(_ parts: Set<Part>, _ title: String) -> Int {
        let texts = texts(parts).reduce(0) { $0 + 1 + $1.0.count }
        return TextWidth.columns(title) + texts + (parts.contains(.bar) ? 1 + Self.barWidth : 0)
    }

    private static let barWidth = 18

    private func bar(_ parts: Set<Part>, _ colours: Colours) -> String {
        guard parts.contains(.bar) else { return "" }
        let inner = Self.barWidth - 2
        let full = job.total > 0 ? min(inner, inner * job.ended / job.total) : 0
        return "[" + colours.green(String(repeating: "#", count: full)) + String(repeating: ".", count: inner - full)
            + "]"
    }

    private func texts(_ parts: Set<Part>) -> [(String, Part)] {
        let failed = job.failed + job.blacklisted
        var all: [(String, Part)] = [
            ("\(job.ended)/\(job.total)", .count), ("\(Output.fixed(job.percent, 0)) %", .percent),
        ]
        if job.done > 0 { all.append(("\(job.done) done", .done)) }
        if job.cached > 0 { all.append(("\(job.cached) cached", .cached)) }
        if failed > 0 { all.append(("\(failed) failed", .failed)) }
        all.append(("\(Output.fixed(rate.items, rate.items < 10 ? 1 : 0))/s", .rate))
        if rate.bytes >= 1 { all.append((Output.bytes(perSecond: rate.bytes), .bytes)) }
        if let left { all.append(("\(left) left", .left)) }
        return all.filter { parts.contains($0.1) }
    }

    private var left: String? {
        guard rate.items > 0, !waits, job.delayed == 0, job.state == .running, job.total > job.ended else { return nil }
        return Output.duration(seconds: Double(job.total - job.ended) / rate.items)
    }
}

/// Items and bytes a second of each job, over the last ten seconds.
struct JobRates {
    struct Rate {
        var items = 0.0
        var bytes = 0.0
    }

    private struct Sample {
        let time: Double
        let ended: Int
        let bytes: Int64
    }

    private static let window = 10.0
    private var samples: [JobID: [Sample]] = [:]

    /// - Parameter time: seconds of a clock that doesn't jump.
    mutating func note(_ jobs: [JobProgress], at time: Double) {
        let known = Set(jobs.map(\.job))
        samples = samples.filter { known.contains($0.key) }
        for job in jobs {
            samples[job.job, default: []].append(Sample(time: time, ended: job.ended, bytes: job.bytes))
            // The first is at least as old as the window, so that rates cover it whole.
            while let list = samples[job.job], list.count > 2, time - list[1].time > Self.window {
                samples[job.job]?.removeFirst()
            }
        }
    }

    func rate(of job: JobID) -> Rate {
        guard let first = samples[job]?.first, let last = samples[job]?.last, last.time > first.time else {
            return Rate()
        }
        let time = last.time - first.time
        // A retry reopens ended items, so the counts may fall.
        return Rate(
            items: max(0, Double(last.ended - first.ended)) / time,
            bytes: max(0, Double(last.bytes) - Double(first.bytes)) / time)
    }
}

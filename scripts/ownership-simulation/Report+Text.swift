extension Report {
    private static let wide = [30, 12, 10, 10, 10]
    private static let narrow = [8, 11, 6, 9, 7, 8, 8, 7, 6, 8, 8]

    /// All tables of one design.
    func printDetails() {
        print("\(grouped(simulation.buckets)) buckets, \(simulation.assignment.policy.rawValue)\n")
        printSpreads()
        printMoves()
        printSpans()
        print(
            "hosts without an owner: \(fixed(100 * simulation.ownerlessShare, 3)) % on average, "
                + "\(fixed(100 * simulation.mostOwnerlessShare, 2)) % at the worst moment, "
                + "\(simulation.ownerlessAtEnd) buckets at the end")
        print(
            "requests at once at one host: \(simulation.mostAtOnce) of \(simulation.settings.perHost) allowed, in "
                + "\(grouped(simulation.requestCount)) requests to \(grouped(simulation.sample.inFlight.count)) hosts")
        print("")
    }

    private func printSpreads() {
        print(row(["over workers", "mean", "p99/mean", "max/mean", "with none"], widths: Self.wide))
        for spread in spreads {
            let cells = [
                spread.name, fixed(spread.mean, spread.mean < 100 ? 2 : 0), fixed(spread.p99, 2),
                fixed(spread.greatest, 2), grouped(spread.without),
            ]
            print(row(cells, widths: Self.wide))
        }
        print("")
    }

    private func printMoves() {
        print(row(["buckets moved by", "changes", "mean", "max", "ideal"], widths: Self.wide))
        for cause in Cause.allCases where cause != .disconnect {
            let cells = [
                cause.name, "\(moves(cause).count)", fixed(meanMoves(cause), 2), "\(moves(cause).max() ?? 0)",
                fixed(idealMoves(cause), 2),
            ]
            print(row(cells, widths: Self.wide))
        }
        print("")
    }

    private func printSpans() {
        print(row(["seconds without an owner", "buckets", "median", "p99", "max"], widths: Self.wide))
        for (name, spans) in Cause.allCases.map({ ("after " + $0.name, spans($0)) }) + [("all", allSpans)] {
            let cells = [
                name, grouped(spans.lengths.count), fixed(spans.quantile(0.5), 1), fixed(spans.quantile(0.99), 1),
                fixed(spans.greatest, 1),
            ]
            print(row(cells, widths: Self.wide))
        }
        print("")
    }

    static func printHeading() {
        print("Compared: workers with no bucket, URLs in time (max/mean), share of the full rate,")
        print("buckets that a join moves, seconds without an owner, hosts without an owner on average,")
        print("most requests at once at one host")
        let names = [
            "buckets", "assignment", "none", "max/mean", "rate", "a join", "ideal", "median", "p99", "idle", "at once",
        ]
        print(row(names, widths: narrow))
    }

    /// One line, to compare designs.
    func printRow() {
        let cells = [
            grouped(simulation.buckets), simulation.assignment.policy.rawValue, grouped(buckets.without),
            fixed(urlsInTime.greatest, 2), fixed(100 * rate, 1) + " %", fixed(meanMoves(.join), 1),
            fixed(idealMoves(.join), 1), fixed(allSpans.quantile(0.5), 1), fixed(allSpans.quantile(0.99), 1),
            fixed(100 * simulation.ownerlessShare, 3) + " %", "\(simulation.mostAtOnce)",
        ]
        print(row(cells, widths: Self.narrow))
    }
}

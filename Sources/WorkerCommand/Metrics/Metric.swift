import Jobs

/// A metric with its samples, as Prometheus' text format has it.
struct Metric: Sendable {
    enum Kind: String, Sendable { case gauge, counter, histogram }

    struct Sample: Sendable {
        /// The end of the metric's name, as in `_bucket`.
        var suffix = ""
        var labels: [(name: String, value: String)] = []
        var value: Double
    }

    let name: String
    let help: String
    let kind: Kind
    let samples: [Sample]

    init(_ kind: Kind, _ name: String, _ help: String, _ samples: [Sample]) {
        self.name = "worker_" + name
        self.help = help
        self.kind = kind
        self.samples = samples
    }

    static func gauge(_ name: String, _ help: String, _ value: Double) -> Metric {
        Metric(.gauge, name, help, [Sample(value: value)])
    }

    static func counter(_ name: String, _ help: String, _ value: Int64) -> Metric {
        Metric(.counter, name + "_total", help, [Sample(value: Double(value))])
    }

    /// One metric with a sample for each value of a label.
    static func each(
        _ kind: Kind, _ name: String, _ help: String, by label: String, _ values: some Sequence<(String, Double)>,
    ) -> Metric {
        Metric(kind, name, help, values.map { Sample(labels: [(label, $0.0)], value: $0.1) })
    }

    var lines: String {
        samples.reduce(into: "# HELP \(name) \(help)\n# TYPE \(name) \(kind.rawValue)\n") {
            $0 += "\(name)\($1.suffix)\($1.labelText) \(Self.number($1.value))\n"
        }
    }

    /// The samples by their names with labels, for JSON.
    var values: [(String, Double)] { samples.map { (name + $0.suffix + $0.labelText, $0.value) } }

    private static func number(_ value: Double) -> String { Int64(exactly: value).map { "\($0)" } ?? "\(value)" }
}

extension Metric.Sample {
    fileprivate var labelText: String {
        guard !labels.isEmpty else { return "" }
        return "{" + labels.map { "\($0.name)=\"\(Self.escaped($0.value))\"" }.joined(separator: ",") + "}"
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}

extension Metric {
    /// The counters of all workers.
    static func counted(_ counts: ActivityCounts) -> [Metric] {
        Counter.allCases.map { counter in
            counter.isHistogram ? histogram(counter, counts) : counted(counter, counts)
        }
    }

    private static func counted(_ counter: Counter, _ counts: ActivityCounts) -> Metric {
        var values = counts.labels(of: counter)
        // Prometheus' rate() counts the first event only if the counter existed before, with the value 0.
        let usual = counter.usualLabels.filter { label in !values.contains { $0.label == label } }
        values += usual.map { ($0, 0) }
        let samples = values.sorted { $0.label < $1.label }.map { label, value in
            Sample(labels: counter.labels(label), value: Double(value))
        }
        return Metric(.counter, counter.rawValue + "_total", counter.help, samples)
    }

    private static func histogram(_ counter: Counter, _ counts: ActivityCounts) -> Metric {
        let (upTo, count, sum) = counts.histogram(counter)
        var samples = upTo.map {
            Sample(suffix: "_bucket", labels: [("le", number($0.bound))], value: Double($0.count))
        }
        samples.append(Sample(suffix: "_bucket", labels: [("le", "+Inf")], value: Double(count)))
        samples.append(Sample(suffix: "_sum", value: sum))
        samples.append(Sample(suffix: "_count", value: Double(count)))
        return Metric(.histogram, counter.rawValue, counter.help, samples)
    }
}

extension Counter {
    /// The labels that are printed even if nothing was counted.
    fileprivate var usualLabels: [String] {
        switch self {
        case .ended: ["done", "cached", "blacklisted"]
        case .requests: ["2xx", "3xx", "4xx", "5xx", "none"]
        case .received, .helperRestarts: [""]
        default: []
        }
    }

    fileprivate func labels(_ label: String) -> [(name: String, value: String)] {
        guard let labelName else { return [] }
        guard let second = self == .ended ? "class" : self == .bucketRequests ? "status" : nil else {
            return [(labelName, label)]
        }
        let words = label.split(separator: " ", maxSplits: 1).map(String.init)
        return [(labelName, words.first ?? ""), (second, words.count > 1 ? words[1] : "")]
    }

    fileprivate var help: String {
        switch self {
        case .ended: "Items that ended, by state and, if they failed, by class."
        case .requests: "Requests to origins, by the kind of status; 'none' is no answer. Redirects are not counted."
        case .received: "Bytes of bodies, as they were transferred."
        case .retries: "Failed tries after which an item waits for another, by class."
        case .transforms: "Renditions that were made, by format."
        case .helperRestarts: "Helpers that died or took too long, and were replaced."
        case .bucketRequests:
            "Requests to the bucket of the cache, by kind and by the kind of status; 'none' is no usable answer. Each try counts."
        case .bucketSent: "Bytes of files that the bucket has stored."
        case .bucketReceived: "Bytes of the bucket's answers, mostly files that the folder did not have."
        case .fetching: "Time from a request to its last byte."
        case .waiting: "Time that an item waited for its host's limits, or for another item's fetch of the same URL."
        case .transforming: "Time from a source's bytes to its renditions, the wait for a helper included."
        case .publishing: "Time from the renditions to the durable end of their item."
        }
    }
}

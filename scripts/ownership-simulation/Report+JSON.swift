extension Report {
    var json: String {
        func number(_ value: Double) -> String { "\((value * 10_000).rounded() / 10_000)" }
        let spread = spreads.map {
            "\"\($0.key)\":{\"mean\":\(number($0.mean)),\"p99_to_mean\":\(number($0.p99)),"
                + "\"max_to_mean\":\(number($0.greatest)),\"workers_without\":\($0.without)}"
        }
        let moved = Cause.allCases.map { "\"\($0.key)\":\(moves($0))" }
        let waits = (Cause.allCases.map { ($0.key, spans($0)) } + [("all", allSpans)]).map { key, spans in
            "\"\(key)\":{\"buckets\":\(spans.lengths.count),\"median\":\(number(spans.quantile(0.5))),"
                + "\"p99\":\(number(spans.quantile(0.99))),\"max\":\(number(spans.greatest))}"
        }
        return "{\"buckets\":\(simulation.buckets),\"assignment\":\"\(simulation.assignment.policy.rawValue)\","
            + "\"spread\":{\(spread.joined(separator: ","))},\"moves\":{\(moved.joined(separator: ","))},"
            + "\"ideal_moves_of_a_join\":\(number(idealMoves(.join))),"
            + "\"seconds_without_owner\":{\(waits.joined(separator: ","))},\"throughput\":\(number(rate)),"
            + "\"idle_share\":\(simulation.ownerlessShare),\"most_idle_share\":\(simulation.mostOwnerlessShare),"
            + "\"most_at_once\":\(simulation.mostAtOnce),\"requests\":\(simulation.requestCount)}"
    }

    static func json(_ reports: [Report], _ settings: Settings) -> String {
        "{\"workers\":\(settings.workers),\"hosts\":\(settings.hosts),\"minutes\":\(settings.minutes),"
            + "\"seed\":\(settings.seed),\"per_host\":\(settings.perHost),\"lease\":\(settings.lease),"
            + "\"split\":\(settings.split),"
            + "\"designs\":[\n\(reports.map(\.json).joined(separator: ",\n"))\n]}"
    }
}

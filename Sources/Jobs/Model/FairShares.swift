/// How places are split among workers that want some: nobody gets more than it wants, and what is left over goes round.
public enum FairShares {
    /// - Parameters:
    ///   - turn: counts up now and then, so that where places are fewer than workers each has its turn.
    /// - Returns: places for each worker; together never more than there are.
    public static func split(_ places: Int, demands: [Int64: Int], turn: Int) -> [Int64: Int] {
        var left = max(0, places)
        var shares = demands.mapValues { _ in 0 }
        var open = demands.filter { $0.value > 0 }.map(\.key).sorted()
        if !open.isEmpty {
            let start = ((turn % open.count) + open.count) % open.count
            open = Array(open[start...] + open[..<start])
        }
        while left > 0, !open.isEmpty {
            // Those that want little have it first; the others share what they leave.
            let each = max(1, left / open.count)
            for worker in open where left > 0 {
                let more = min(each, left, (demands[worker] ?? 0) - (shares[worker] ?? 0))
                shares[worker, default: 0] += more
                left -= more
            }
            open.removeAll { shares[$0] == demands[$0] }
        }
        return shares
    }
}

// What is sent away, to come again later.
extension WaitingQueue {
    /// What waits at hosts that are blocked for longer than `time` yet, or were given up: those are left alone from now on.
    mutating func removeHopeless(longerThan time: Duration, now: ContinuousClock.Instant) -> [Ticket] {
        var found: [Ticket] = []
        for (name, host) in hosts where host.live > 0 {
            let isGivenUp = host.gate.isGivenUp(now)
            if isGivenUp, host.gate.blockedUntil == nil { park(name, now) }
            guard isGivenUp || host.gate.blockedUntil.map({ $0 - now > time }) ?? false else { continue }
            for place in host.places.unordered where waiting[place.ticket]?.place == place {
                if let ticket = waiting[place.ticket]?.ticket { found.append(ticket) }
            }
        }
        for ticket in found { _ = remove(ticket.id) }
        return found
    }

    /// The last of what waits at the hosts where more than `limit` do; they may come again later.
    mutating func shed(over limit: Int) -> [Ticket] {
        var shed: [Ticket] = []
        for host in hosts.values where host.live > limit {
            let valid = host.places.unordered.filter { waiting[$0.ticket]?.place == $0 }.sorted()
            for place in valid.dropFirst(limit) {
                if let ticket = waiting[place.ticket]?.ticket { shed.append(ticket) }
            }
        }
        for ticket in shed { _ = remove(ticket.id) }
        return shed
    }
}

// Hosts that keep others waiting.
extension WaitingQueue {
    /// Whether the host has silent transfers.
    func isSilent(_ host: String) -> Bool { hosts[host]?.silent ?? 0 > 0 }

    mutating func changeSilent(_ host: String, by change: Int) { hosts[host]?.silent += change }

    /// Whether the host has never answered, as far as is remembered.
    func isStranger(_ host: String) -> Bool { hosts[host].map { !$0.gate.hasAnswered } ?? true }
}

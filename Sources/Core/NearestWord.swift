/// Finds the word that a misspelt one was meant to be. Every message about an unknown word uses it.
public enum NearestWord {
    /// The word at the smallest edit distance, or else the first that begins with the text; nil if none is near.
    public static func find(_ text: String, among words: some Sequence<String>) -> String? {
        guard text.utf8.count <= 32 else { return nil }
        let lowered = text.lowercased()
        let all = Array(words)
        let best = all.map { ($0, distance(lowered, $0.lowercased())) }.min { $0.1 < $1.1 }
        if let best, best.1 <= max(1, best.0.utf8.count / 2), best.1 <= 2 { return best.0 }
        return lowered.utf8.count < 3 ? nil : all.first { $0.lowercased().hasPrefix(lowered) }
    }

    /// ` Did you mean 'enqueue'?`, with the space before it; nothing if no word is near.
    public static func question(_ text: String, among words: some Sequence<String>) -> String {
        find(text, among: words).map { " Did you mean '\($0)'?" } ?? ""
    }

    /// Insertions, deletions and replacements, with two neighbours swapped counting as one (Damerau).
    static func distance(_ left: String, _ right: String) -> Int {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var rows = [Array(0...right.count)]
        for i in left.indices {
            var row = [i + 1]
            for j in right.indices {
                let replaced = rows[i][j] + (left[i] == right[j] ? 0 : 1)
                var least = min(replaced, rows[i][j + 1] + 1, row[j] + 1)
                if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] {
                    least = min(least, rows[i - 1][j - 1] + 1)
                }
                row.append(least)
            }
            rows.append(row)
        }
        return rows[left.count][right.count]
    }
}

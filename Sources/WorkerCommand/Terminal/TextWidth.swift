import CTerminal
import Glibc

/// The columns that text takes on a terminal: two for wide characters such as Chinese ones, none for combining marks.
enum TextWidth {
    /// `wcwidth` answers by the thread's locale, and this program runs in the "C" locale, which knows ASCII only.
    private nonisolated(unsafe) static let locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil)

    static func columns(_ text: String) -> Int {
        inLocale { text.reduce(0) { $0 + columns($1) } }
    }

    /// The beginning of a text that has room in these columns.
    static func prefix(_ text: String, _ most: Int) -> String {
        inLocale {
            var left = most
            return String(
                text.prefix { character in
                    left -= columns(character)
                    return left >= 0
                })
        }
    }

    private static func inLocale<R>(_ body: () -> R) -> R {
        let before = uselocale(locale)
        defer { _ = uselocale(before) }
        return body()
    }

    /// A sequence of joined emoji is drawn as one.
    private static func columns(_ character: Character) -> Int {
        min(2, character.unicodeScalars.reduce(0) { $0 + max(0, Int(cterminal_columns($1.value))) })
    }
}

import CCurl

/// The cookies of one of the caller's jobs, shared by its transfers. Used by the curl thread alone, so it needs no locks.
///
/// See https://curl.se/libcurl/c/curl_share_setopt.html
final class CookieJar {
    let pointer: UnsafeMutableRawPointer

    init() throws(EasyHandle.OptionError) {
        guard let pointer = curl_share_init() else { throw EasyHandle.OptionError(code: CURLE_OUT_OF_MEMORY) }
        guard ccurl_share_cookies(pointer) == CURLSHE_OK else {
            curl_share_cleanup(pointer)
            throw EasyHandle.OptionError(code: CURLE_FAILED_INIT)
        }
        self.pointer = pointer
    }

    deinit { curl_share_cleanup(pointer) }
}

/// The jars in use, and those used last.
struct CookieJars {
    private static let most = 64
    private var jars: [Int64: (jar: CookieJar, use: Int)] = [:]
    private var uses = 0

    mutating func jar(_ name: Int64) throws(EasyHandle.OptionError) -> CookieJar {
        uses += 1
        if let known = jars[name]?.jar {
            jars[name]?.use = uses
            return known
        }
        if jars.count >= Self.most, let oldest = jars.min(by: { $0.value.use < $1.value.use })?.key {
            jars[oldest] = nil
        }
        let made = try CookieJar()
        jars[name] = (made, uses)
        return made
    }
}

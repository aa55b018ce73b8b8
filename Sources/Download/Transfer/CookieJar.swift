import CCurl
import Core

/// The cookies of one of the caller's jobs, shared by its transfers. Only the curl thread uses it, so it needs no
/// locks.
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

/// The most recently used jars. Jars in use are also kept by their transfers.
struct CookieJars {
    private var jars = LRUCache<Int64, CookieJar>(countLimit: 64)

    mutating func jar(_ name: Int64) throws(EasyHandle.OptionError) -> CookieJar {
        if let known = jars.value(name) { return known }
        let made = try CookieJar()
        jars.insert(made, for: name)
        return made
    }
}

import CCurl

/// Owns one `CURL` handle, its error text and its header list. Only the curl thread uses it.
///
/// See https://curl.se/libcurl/c/curl_easy_setopt.html for every option.
final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    /// Kept for as long as the handle, which must be freed first.
    private(set) var jar: CookieJar?
    private var headers: UnsafeMutablePointer<curl_slist>?

    /// libcurl refused an option: out of memory, or built without the feature.
    struct OptionError: Error {
        let code: CURLcode
        /// Its number in curl.h.
        var option: CURLoption?
    }

    init() throws(OptionError) {
        guard let pointer = curl_easy_init() else { throw OptionError(code: CURLE_FAILED_INIT) }
        self.pointer = pointer
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(headers)
        errorText.deallocate()
    }

    /// Whether the options that usual requests share are set, and no other option.
    var isSetUp = false

    /// Resets all options, so that no option of one request affects the next. Connections belong to the multi handle
    /// and stay.
    func reset() throws(OptionError) {
        isSetUp = false
        curl_easy_reset(pointer)
        try set(CURLOPT_ERRORBUFFER, UnsafeMutableRawPointer(errorText))
    }

    func set(_ option: CURLoption, _ value: Int) throws(OptionError) {
        try Self.check(ccurl_set_long(pointer, option, value), option)
    }

    func set(_ option: CURLoption, _ value: String) throws(OptionError) {
        try Self.check(ccurl_set_text(pointer, option, value), option)
    }

    func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer) throws(OptionError) {
        try Self.check(ccurl_set_pointer(pointer, option, value), option)
    }

    /// Sends and stores cookies. Cookies stay with a handle for good, so no other job can use it.
    func use(_ jar: CookieJar) throws(OptionError) {
        self.jar = jar
        try set(CURLOPT_SHARE, jar.pointer)
        // An empty name enables cookies without reading a file.
        try set(CURLOPT_COOKIEFILE, "")
    }

    /// Sends these header lines and no earlier ones.
    func set(headers lines: [String]) throws(OptionError) {
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines {
            guard let longer = curl_slist_append(list, line) else {
                curl_slist_free_all(list)
                throw OptionError(code: CURLE_OUT_OF_MEMORY)
            }
            list = longer
        }
        let old = headers
        headers = list
        // libcurl reads the old list until the new one is set.
        defer { curl_slist_free_all(old) }
        try Self.check(ccurl_set_pointer(pointer, CURLOPT_HTTPHEADER, list), CURLOPT_HTTPHEADER)
    }

    func forgetError() { errorText.pointee = 0 }

    func long(_ info: CURLINFO) -> Int { ccurl_get_long(pointer, info) }

    func offset(_ info: CURLINFO) -> Int64 { Int64(ccurl_get_offset(pointer, info)) }

    func text(_ info: CURLINFO) -> String { ccurl_get_text(pointer, info).map { String(cString: $0) } ?? "" }

    /// libcurl's own error message.
    func explain(_ code: CURLcode) -> String {
        let detail = String(cString: errorText)
        if detail.isEmpty { return String(cString: curl_easy_strerror(code)) }
        // OpenSSL/3.0.19: error:0A00010B:SSL routines::wrong version number
        return detail.replacing(/OpenSSL\/[^ ]+: error:[0-9A-F]+:[^:]*:[^:]*:/, with: "TLS: ")
    }

    static func check(_ code: CURLcode, _ option: CURLoption? = nil) throws(OptionError) {
        guard code == CURLE_OK else { throw OptionError(code: code, option: option) }
    }
}

import CCurl

/// The owner of one `CURL` handle, its error text and its header list. Used by the curl thread alone.
///
/// See https://curl.se/libcurl/c/curl_easy_setopt.html for every option.
final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    /// Kept for as long as the handle, which must go first.
    private(set) var jar: CookieJar?
    private var headers: UnsafeMutablePointer<curl_slist>?

    /// An option that libcurl did not take: out of memory, or a libcurl without the feature.
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

    /// Whether the options that all usual requests share are set, and none of an unusual one.
    var isSetUp = false

    /// Back to no options at all, so that nothing of one request can reach the next. Connections are the multi
    /// handle's and stay.
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

    /// Sends and keeps cookies. Cookies stay with a handle for good, so no other job can use it.
    func use(_ jar: CookieJar) throws(OptionError) {
        self.jar = jar
        try set(CURLOPT_SHARE, jar.pointer)
        // An empty name switches the cookies on and reads no file.
        try set(CURLOPT_COOKIEFILE, "")
    }

    /// Sends these lines, and none of those before.
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
        // Only now the old ones are no longer read.
        defer { curl_slist_free_all(old) }
        try Self.check(ccurl_set_pointer(pointer, CURLOPT_HTTPHEADER, list), CURLOPT_HTTPHEADER)
    }

    func forgetError() { errorText.pointee = 0 }

    func long(_ info: CURLINFO) -> Int { ccurl_get_long(pointer, info) }

    func offset(_ info: CURLINFO) -> Int64 { Int64(ccurl_get_offset(pointer, info)) }

    func text(_ info: CURLINFO) -> String { ccurl_get_text(pointer, info).map { String(cString: $0) } ?? "" }

    /// curl's own message.
    func explain(_ code: CURLcode) -> String {
        let detail = String(cString: errorText)
        return detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
    }

    static func check(_ code: CURLcode, _ option: CURLoption? = nil) throws(OptionError) {
        guard code == CURLE_OK else { throw OptionError(code: code, option: option) }
    }
}

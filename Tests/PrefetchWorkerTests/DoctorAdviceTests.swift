import Testing

@testable import PrefetchWorker

@Suite("Doctor's advice") struct DoctorAdviceTests {
    /// Since Debian 13 the codecs of libheif are packages of their own.
    @Test func `The packages are named for all formats that can't be read or written, at once`() {
        #expect(
            Doctor.advice(unread: ["heic"], unwritten: ["avif", "heic"])
                == "Not readable here: heic; install libheif-plugin-libde265 for heic. "
                + "Not writable here: avif, heic; install libheif-plugin-aomenc for avif, libheif-plugin-x265 for heic."
        )
        #expect(
            Doctor.advice(unread: [], unwritten: ["tiff"]) == "Not writable here: tiff; install libvips42 for tiff.")
    }
}

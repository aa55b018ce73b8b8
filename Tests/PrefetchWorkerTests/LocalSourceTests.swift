import Foundation
import Jobs
import PrefetchWorker
import SystemPackage
import TestSupport
import Testing

@Suite("Sources without a network", .timeLimit(.minutes(15)), .enabled(if: Workplace.isBuilt, Workplace.notBuilt))
struct LocalSourceTests {
    @Test func `Files and data URLs are read only where they are allowed`() async throws {
        try await withTemporaryDirectory { folder in
            let open = folder.appending("open").string
            let inside = open + "/a b.jpg"
            try FileManager.default.createDirectory(atPath: open, withIntermediateDirectories: true)
            try Data(Pictures.jpeg).write(to: URL(filePath: inside))
            try Data(Pictures.jpeg).write(to: URL(filePath: folder.appending("secret.jpg").string))
            try FileManager.default.createSymbolicLink(
                atPath: open + "/link.jpg", withDestinationPath: folder.appending("secret.jpg").string)
            let data = "data:image/png;base64," + Data(Pictures.png).base64EncodedString()
            let urls = [
                "file://\(open)/a%20b.jpg", "file://localhost\(open)/a%20b.jpg", data,
                "file://\(open)/../secret.jpg", "file://\(open)/link.jpg", "file:///etc/passwd", "file://\(open)",
                "file://elsewhere.example\(open)/a%20b.jpg", "file://\(open)/none.jpg", "data:,not%20an%20image",
                "data:image/png;base64,!!!",
            ]
            try await withWorkplace(configure: { configuration in
                configuration.local.folders = [open]
                configuration.local.allowsData = true
            }) { place in
                let job = try await place.enqueue(urls, variants: "small=8x8,png")
                try await place.drain()
                let results = try await place.store.reports.results(job: job, after: 0, limit: 20)
                    .filter { $0.variant != "original" }
                #expect(
                    results.map { $0.failure ?? "\($0.width ?? 0)" } == [
                        "8", "8", "8", "denied", "http-404", "denied", "denied", "invalid-url", "http-404",
                        "not-an-image", "invalid-url",
                    ])
            }
            try await withWorkplace { place in
                let job = try await place.enqueue(Array(urls.prefix(3)))
                try await place.drain()
                let results = try await place.store.reports.results(job: job, after: 0, limit: 20)
                #expect(results.map(\.failure) == ["denied", "denied", "denied"])
            }
        }
    }
}

// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "PrefetchWorker",
    products: [
        .executable(name: "worker", targets: ["WorkerCommand"]),
        // Decodes and encodes pictures; `worker` starts it.
        .executable(name: "worker-helper", targets: ["WorkerHelper"]),
        // Who embeds the worker puts jobs into its queue, and may bring coders and addresses. The program is its own
        // helper.
        .library(
            name: "PrefetchWorker",
            targets: ["PrefetchWorker", "PrefetchHelper", "Core", "Jobs", "Variants", "ImageFiles", "Download"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.1", traits: []),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.2", traits: []),
    ],
    targets: [
        // The C libraries: a module map and a shim header each, for what Swift cannot call.
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CVips", pkgConfig: "vips", providers: [.apt(["libvips-dev"])]),
        .systemLibrary(name: "CWebP", pkgConfig: "libwebp", providers: [.apt(["libwebp-dev"])]),
        .systemLibrary(name: "CJPEG", pkgConfig: "libjpeg", providers: [.apt(["libjpeg-dev"])]),
        .systemLibrary(name: "CAVIF", pkgConfig: "libavif", providers: [.apt(["libavif-dev"])]),
        .systemLibrary(name: "CJXL", pkgConfig: "libjxl", providers: [.apt(["libjxl-dev"])]),
        .systemLibrary(name: "CPCRE", pkgConfig: "libpcre2-8", providers: [.apt(["libpcre2-dev"])]),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CInflate", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "CXML", pkgConfig: "libxml-2.0", providers: [.apt(["libxml2-dev"])]),
        .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CGIF", providers: [.apt(["libgif-dev"])]),
        .systemLibrary(name: "CSQLiteTriggers"),
        .systemLibrary(name: "CPostgres", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CDescriptorPassing"),
        .systemLibrary(name: "CSyncing"),
        .systemLibrary(name: "CTerminal"),
        .systemLibrary(name: "CLandlock"),
        .systemLibrary(name: "CSeccomp", pkgConfig: "libseccomp", providers: [.apt(["libseccomp-dev"])]),

        // What the leaves share.
        .target(name: "Core", dependencies: [.product(name: "SystemPackage", package: "swift-system")]),

        .target(name: "Hashing", dependencies: ["CCrypto"]),

        // The leaves: none of them imports another, but for the language of variants.
        .target(name: "Variants", dependencies: ["Core"]),
        .target(
            name: "Jobs",
            dependencies: [
                "Core", "CPCRE", "CSQLiteTriggers", "CPostgres",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .target(
            name: "Download",
            dependencies: [
                "Core", "Hashing", "CCurl", "CInflate",
                .product(name: "HeapModule", package: "swift-collections"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        // The formats, headers and limits of pictures; it needs no image library.
        .target(
            name: "ImageFiles",
            dependencies: ["Core", "Variants", .product(name: "SystemPackage", package: "swift-system")]),
        .target(
            name: "Imaging",
            dependencies: [
                "Core", "Variants", "ImageFiles", "CVips", "CWebP", "CJPEG", "CAVIF", "CJXL", "CGIF", "CZlib",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .target(
            name: "ContentCache",
            dependencies: [
                "Core", "Hashing", "CSyncing",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),

        .target(
            name: "Lists",
            dependencies: [
                "Core", "CXML", "CInflate", "CZstd", .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),

        // Objects in a bucket, by the S3 protocol.
        .target(
            name: "ObjectStorage",
            dependencies: [
                "Core", "Hashing", "CCurl", "CXML", .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),

        // The messages between worker and helper, and the helper.
        .target(
            name: "HelperProtocol",
            dependencies: [
                "Core", "Variants", "ImageFiles", "CDescriptorPassing",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .target(
            name: "PrefetchHelper",
            dependencies: [
                "Core", "Variants", "ImageFiles", "Imaging", "HelperProtocol", "CDescriptorPassing", "CLandlock",
                "CSeccomp", .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .executableTarget(name: "WorkerHelper", dependencies: ["PrefetchHelper"]),

        // What joins them, and the command.
        .target(
            name: "PrefetchWorker",
            dependencies: [
                "Core", "Jobs", "Download", "Variants", "ImageFiles", "ContentCache", "ObjectStorage", "Hashing",
                "HelperProtocol", "CDescriptorPassing",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Subprocess", package: "swift-subprocess"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        // The pages and their data, over HTTP.
        .target(
            name: "Dashboard",
            dependencies: [
                "Core", "Jobs", "ContentCache", "Hashing", "PrefetchWorker",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "HummingbirdCore", package: "hummingbird"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "NIOCore", package: "swift-nio"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            // Parts of the program, so that it stays one file.
            resources: [
                .embedInCode("Web/index.html"), .embedInCode("Web/login.html"), .embedInCode("Web/style.css"),
                .embedInCode("Web/app.js"), .embedInCode("Web/views.js"),
                .embedInCode("Web/charts.js"), .embedInCode("Web/icon.svg"),
            ],
        ),
        .executableTarget(
            name: "WorkerCommand",
            dependencies: [
                "PrefetchWorker", "Core", "Jobs", "Download", "Variants", "ImageFiles", "ContentCache", "Lists",
                "Dashboard", "CTerminal",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "Configuration", package: "swift-configuration"),
                .product(name: "Logging", package: "swift-log"),
                .product(name: "SystemPackage", package: "swift-system"),
                .product(name: "UnixSignals", package: "swift-service-lifecycle"),
                .product(name: "Yams", package: "Yams"),
            ],
        ),

        // How a program embeds the worker; tests run it.
        .executableTarget(
            name: "SepiaWorker",
            dependencies: [
                "PrefetchWorker", "PrefetchHelper", "Core", "Jobs", "Download", "ImageFiles",
                .product(name: "Logging", package: "swift-log"),
            ],
            path: "Examples/SepiaWorker",
        ),

        .target(
            name: "TestSupport",
            dependencies: ["Core", .product(name: "SystemPackage", package: "swift-system")],
            path: "Tests/TestSupport",
        ),
        .testTarget(name: "CoreTests", dependencies: ["Core"]),
        .testTarget(
            name: "ListsTests",
            dependencies: [
                "Core", "Lists", "TestSupport", .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .testTarget(
            name: "JobsTests",
            dependencies: [
                "Core", "Jobs", "TestSupport",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
            exclude: ["Frozen"],
        ),
        .testTarget(
            name: "DownloadTests",
            dependencies: [
                "Core", "Download", "Hashing", "TestSupport",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .testTarget(
            name: "ImagingTests",
            dependencies: [
                "Core", "Variants", "ImageFiles", "Imaging", "TestSupport",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .testTarget(
            name: "ContentCacheTests",
            dependencies: [
                "Core", "ContentCache", "TestSupport", .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .testTarget(
            name: "ObjectStorageTests",
            dependencies: [
                "Core", "Hashing", "ObjectStorage", "TestSupport",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .executableTarget(
            name: "TestHelper", dependencies: ["PrefetchWorker", "PrefetchHelper", "Core", "Jobs", "ImageFiles"],
            path: "Tests/TestHelper"),
        .testTarget(
            name: "PrefetchWorkerTests",
            dependencies: [
                "TestHelper", "WorkerHelper", "PrefetchWorker", "PrefetchHelper", "HelperProtocol", "Core", "Jobs",
                "Download", "Variants", "ImageFiles", "Imaging", "ContentCache", "TestSupport",
                .product(name: "Logging", package: "swift-log"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
        .testTarget(
            name: "WorkerTests",
            dependencies: [
                "WorkerCommand", "WorkerHelper", "SepiaWorker", "PrefetchWorker", "ObjectStorage", "Core", "Hashing",
                "TestSupport",
                .product(name: "SystemPackage", package: "swift-system"),
            ],
        ),
    ],
    swiftLanguageModes: [.v6],
)

// The same rules for every Swift target of ours.
for target in package.targets where [.regular, .executable, .test].contains(target.type) {
    target.swiftSettings = [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
    ]
}

// The tests run the program as users have it, optimised: `scripts/test` builds for release, and asks by the environment for
// modules that tests can look into. Optimising the tests themselves would take as long as all the rest. A package with such
// flags can't be depended on, so they aren't there otherwise.
if Context.environment["TESTS_FOR_RELEASE"] != nil {
    for target in package.targets where [.regular, .executable].contains(target.type) {
        target.swiftSettings? += [.unsafeFlags(["-enable-testing"])]
    }
    for target in package.targets where target.type == .test {
        target.swiftSettings? += [.unsafeFlags(["-Onone"])]
    }
}

// The fast suites, whose modules need no others, are built without the rest: `scripts/test --fast`.
if Context.environment["FAST_SUITES"] != nil {
    let rest = [
        "HelperProtocol", "PrefetchHelper", "PrefetchWorker", "Dashboard", "WorkerCommand", "WorkerHelper",
        "SepiaWorker", "TestHelper", "PrefetchWorkerTests", "WorkerTests",
    ]
    package.products = []
    package.targets.removeAll { rest.contains($0.name) }
}

// What parses foreign bytes within the worker's process, driven by libFuzzer: `scripts/fuzz` builds it, in a folder of its
// own, with counters in the modules that are looked at.
if Context.environment["FUZZ"] != nil {
    let counted = [
        "Core", "Jobs", "Download", "Variants", "ImageFiles", "Imaging", "HelperProtocol", "Lists", "ObjectStorage",
        "PrefetchWorker",
    ]
    for target in package.targets where counted.contains(target.name) {
        target.swiftSettings? += [.unsafeFlags(["-O", "-sanitize=fuzzer"])]
    }
    package.targets.append(
        .executableTarget(
            name: "Fuzz",
            dependencies: [
                "Core", "Jobs", "Download", "Variants", "ImageFiles", "Imaging", "HelperProtocol", "Lists",
                "ObjectStorage", "PrefetchWorker",
                .product(name: "SystemPackage", package: "swift-system"), .product(name: "Yams", package: "Yams"),
            ],
            // The manifest's files are links into the command, which can't be linked with another `main`.
            path: "Fuzz",
            swiftSettings: [.unsafeFlags(["-O", "-sanitize=fuzzer"])],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])],
        ))
}

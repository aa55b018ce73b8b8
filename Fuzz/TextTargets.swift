@testable import HelperProtocol
@testable import ImageFiles
@testable import Imaging
@testable import Jobs
@testable import PrefetchWorker
@testable import Variants

// Text of people, programs and helpers: manifests, variants, options of jobs, answers.

extension FuzzTarget {
    static let textTargets = [delegateAnswers, helperReplies, jobOptions, manifests, variants]

    private static let delegateAnswers = FuzzTarget(
        name: "delegate-answers",
        seeds: [
            "{\"ok\":true}\nbytes", "{\"error\":\"no\"}", "{\"allow\":false,\"status\":404,\"headers\":{\"a\":\"b\"}}",
            "{\"status\":1e300}",
        ].map { Array($0.utf8) }
    ) { bytes in
        _ = CommandAnswer(Array(bytes))
        _ = DelegateAnswer(Array(bytes))
    }

    private static let helperReplies = FuzzTarget(
        name: "helper-replies",
        seeds: [
            "{\"outgrown\":{}}", "{\"failed\":{\"_0\":{\"code\":\"encode\",\"message\":\"x\"}}}",
            """
            {"made":{"_0":{"facts":{"formatName":"png","width":9223372036854775807,"height":2,"frames":1,\
            "hasAlpha":true},"renditions":[{"name":"a","width":1,"height":1,"formatName":"png"}]}}}
            """,
        ].map { Array($0.utf8) }
    ) { bytes in _ = try? HelperReply(json: Array(bytes)) }

    private static let jobOptions = FuzzTarget(
        name: "job-options",
        seeds: [
            "retry-failed, max-age=12h cache-max-age=-1 cache-key=drop-query",
            "timeout=500ms,max-tries=9,retry-delay=1h",
            "min-width=100 max-aspect=2.5 max-bytes=9223372036854775807", "cache-key=s/(a+)+b/x/",
            "cache-key=keep:id+v",
            "content-types=image/*+image/png",
        ].map { Array($0.utf8) }
    ) { bytes in
        let text = String(decoding: bytes, as: UTF8.self)
        _ = try? JobOptions(parsing: text)
        guard let settings = try? JobSettings(parsing: text) else { return }
        _ = try? settings.cacheKey?.key(of: "https://example.com/a/aaaaaaaa?id=1&v=2#b")
        for (width, height) in [(1, 1), (10_000_000, 1), (.max, .max)] {
            _ = settings.filter.objection(width: width, height: height, isUpright: true)
        }
    }

    private static let manifests = FuzzTarget(
        name: "manifests",
        seeds: [
            "name: a\nurls: [http://a/b, http://c]\nvariants: a=320x,webp\noptions: [retry-failed]\npriority: 5\n",
            "{\"urls\": [\"http://a\"], \"headers\": {\"A\": \"b\"}, \"order\": \"lifo\"}", "? {a: &x [*x]}",
        ].map { Array($0.utf8) }
    ) { bytes in
        _ = try? Manifest(parsing: String(decoding: bytes, as: UTF8.self), "manifest")
    }

    private static let variants = FuzzTarget(
        name: "variants",
        seeds: [
            "thumb=320x240,cover,north,webp,q80,sharpen:0.7", "a=x,png,crop:1:2:3:4,resize,rotate:30:background=#fff",
            "a=1x1 b=2x,auto:webp+jpeg,max-bytes:9; c=,round:20::5",
            "{\"name\":\"t\",\"width\":320,\"fit\":\"cover\",\"format\":\"webp\",\"ops\":[{\"blur\":{\"sigma\":2}}]}",
        ].map { Array($0.utf8) }
    ) { bytes in
        guard let specs = try? VariantSpec.parseList(String(decoding: bytes, as: UTF8.self)) else { return }
        for spec in specs {
            // What it is filed under means the same.
            let again = try? VariantSpec.parseList("[\(spec.canonical)]")
            precondition(again == nil || again?.first?.canonical == spec.canonical)
            for (width, height) in [(1, 1), (10_000_000, 1), (4_000, 3_000)] {
                let size = PixelSize(width: width, height: height)
                _ = (Placement(of: size, for: spec), StagedVariant(spec))
            }
        }
    }
}

/// The stages that every item passes, and their rules. All items of a run share one instance.
///
/// A class, since each item has a reference to it; copying the fields would retain and release eight objects.
final class Stages: Sendable {
    let lookup: SourceLookup
    let fetcher: Fetcher
    let renderer: Renderer
    let publisher: Publisher
    let delegate: DelegateQuestions
    let hosts: BlockedHosts
    let failures: FailurePolicy
    let settings: StageSettings
    /// The progress of sources that the cache or a loader delivers.
    var transfers: Transfers { fetcher.loaders.transfers }

    init(
        lookup: SourceLookup, fetcher: Fetcher, renderer: Renderer, publisher: Publisher, delegate: DelegateQuestions,
        rules: StageRules,
    ) {
        self.lookup = lookup
        self.fetcher = fetcher
        self.renderer = renderer
        self.publisher = publisher
        self.delegate = delegate
        hosts = rules.hosts
        failures = rules.failures
        settings = rules.settings
    }
}

/// The rules that the stages apply.
struct StageRules: Sendable {
    let hosts: BlockedHosts
    let failures: FailurePolicy
    let settings: StageSettings
}

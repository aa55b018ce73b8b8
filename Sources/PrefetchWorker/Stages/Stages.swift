/// The stages that every item passes, and their rules. All items of a run share one instance.
struct Stages: Sendable {
    let lookup: SourceLookup
    let fetcher: Fetcher
    let renderer: Renderer
    let publisher: Publisher
    let delegate: DelegateQuestions
    let hosts: BlockedHosts
    let failures: FailurePolicy
    let transfers: Transfers
    let settings: StageSettings
}

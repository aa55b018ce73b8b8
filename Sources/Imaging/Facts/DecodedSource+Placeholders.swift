extension DecodedSource {
    /// The facts, with what the decoded pixels tell besides.
    ///
    /// - Parameter base: upright, in web colours and in memory, of any size.
    func facts(with base: Picture) throws(ImagingError) -> ImageFacts {
        var facts = facts
        do throws(VipsFailure) {
            facts.placeholders = try base.placeholders(width: facts.width, height: facts.height)
        } catch {
            throw error.error(.transform, "The placeholders could not be told")
        }
        return facts
    }
}

extension EffectRunner {
    /// Hands the picture to the program's own transform. Metadata stay as they are.
    ///
    /// - Throws: class `delegate`.
    func delegated(_ effect: Effect, _ picture: Picture) throws(ImagingError) -> Picture {
        let name = effect.word("name")
        guard let transform = extensions.transform(named: name) else {
            throw ImagingError(code: .delegate, message: "There is no transform of the name '\(name)'.")
        }
        do throws(VipsFailure) {
            guard let image = try RGBAImage(picture) else { throw VipsFailure(text: "it has no pixels") }
            let result: RGBAImage
            do {
                result = try transform.transform(image, argument: effect.word("argument"))
            } catch {
                throw VipsFailure(text: "\(error)")
            }
            return try result.picture(from: picture)
        } catch {
            throw error.error(.delegate, "The transform '\(name)' failed")
        }
    }
}

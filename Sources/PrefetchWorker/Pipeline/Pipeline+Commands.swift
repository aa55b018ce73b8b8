internal import ContentCache
internal import Imaging
internal import Jobs

extension Pipeline {
    /// Makes variants of one source: all that helpers can do in one go, then those with commands, one after the other.
    func makeAll(
        _ specs: [VariantSpec], of file: BlobFile, _ assets: [String: Asset], tolerance: DecodeTolerance,
    ) async -> HelperOutcome {
        guard !specs.isEmpty else { return await helpers.facts(of: file, tolerance: tolerance) }
        let staged = specs.map(StagedVariant.init)
        let firsts: [VariantSpec]
        do {
            firsts = try zip(specs, staged).map { try $1?.first() ?? $0 }
        } catch {
            return .failed(.transform, "\(error)")
        }
        let outcome = await transformed(
            file, into: firsts, assets: assets, tolerance: tolerance)
        guard case .made(let report, var blobs) = outcome else { return outcome }
        var renditions = report.renditions
        for (index, staged) in staged.enumerated() {
            guard let staged else { continue }
            let picture = Picture(blob: blobs[index], rendition: renditions[index])
            switch await finish(staged, picture, of: report.facts, assets) {
            case .failure(let end): return end.outcome
            case .success(let picture): (blobs[index], renditions[index]) = (picture.blob, picture.rendition)
            }
        }
        return .made(TransformReport(facts: report.facts, renditions: renditions), blobs)
    }

    private struct Picture {
        let blob: PendingBlob
        let rendition: Rendition
    }

    /// Why a variant ended before it was made; never `made`.
    private struct EarlyEnd: Error { let outcome: HelperOutcome }

    /// From what the first command gets to the variant.
    private func finish(
        _ staged: StagedVariant, _ first: Picture, of source: ImageFacts, _ assets: [String: Asset],
    ) async -> Result<Picture, EarlyEnd> {
        var picture = first
        for (index, command) in staged.commands.enumerated() {
            do {
                let answer = try await commands.run(
                    command, on: picture.blob.file, width: picture.rendition.width, height: picture.rendition.height)
                let spec = try staged.spec(after: index, of: source)
                let outcome = await transformed(
                    answer, into: [spec], assets: assets.filter { spec.assetNames.contains($0.key) })
                guard case .made(let report, let blobs) = outcome, let rendition = report.renditions.first,
                    let blob = blobs.first
                else { return .failure(EarlyEnd(outcome: outcome.blaming(command.name))) }
                picture = Picture(blob: blob, rendition: rendition)
            } catch let error as CommandFailure {
                return .failure(EarlyEnd(outcome: HelperOutcome(error)))
            } catch {
                return .failure(EarlyEnd(outcome: .failed(.transform, "\(error)")))
            }
        }
        return .success(picture)
    }
}

extension HelperOutcome {
    fileprivate init(_ failure: CommandFailure) {
        self =
            switch failure {
            case .failed(let message): .failed(.delegate, message)
            case .cancelled: .stopped
            case .disk(let message): .disk(CacheError(.disk, message))
            }
    }

    /// A picture that can't be read is its command's fault, and not that of the source.
    fileprivate func blaming(_ command: String) -> HelperOutcome {
        switch self {
        case .failed(.notAnImage, let message), .failed(.badImage, let message), .failed(.truncated, let message),
            .failed(.tooManyPixels, let message), .failed(.decoderCrash, let message):
            .failed(.delegate, "What the command '\(command)' answered can't be used: \(message)")
        default: self
        }
    }
}

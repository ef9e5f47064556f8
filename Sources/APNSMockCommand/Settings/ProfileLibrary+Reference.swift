import Faults

extension ProfileLibrary {
  /// Loads the profile that a reference specifies, with its source.
  ///
  /// - Throws: `ProfileFailure`.
  func loaded(_ reference: ProfileReference) throws(ProfileFailure) -> (source: ProfileSource, loaded: LoadedProfile) {
    let source: ProfileSource
    switch reference.place {
    case .file(let path): source = try Self.file(path)
    case .name(let name):
      guard let known = self.source(named: name) else {
        // `profile(named:)` throws an error that lists the known names.
        return (ProfileSource(name: name, text: "", origin: .inline), try profile(named: name))
      }
      source = known
    }
    return (source, try profile(of: source, parameters: reference.parameters))
  }
}

import Faults

extension ProfileLibrary {
  /// The profile that a reference leads to, and the text it was made of.
  ///
  /// - Throws: `ProfileFailure`.
  func loaded(_ reference: ProfileReference) throws(ProfileFailure) -> (source: ProfileSource, loaded: LoadedProfile) {
    let source: ProfileSource
    switch reference.place {
    case .file(let path): source = try Self.file(path)
    case .name(let name):
      guard let known = self.source(named: name) else {
        // It throws, for it says which names there are.
        return (ProfileSource(name: name, text: "", origin: .inline), try profile(named: name))
      }
      source = known
    }
    return (source, try profile(of: source, parameters: reference.parameters))
  }
}

internal import TLSEngine

extension ProviderKeysFile {
  /// Adds a key, which is trusted from the next start on. The file's comments and order are kept.
  ///
  /// - Returns: False if the file already contains the same entry.
  /// - Throws: `CertificateFolderError`, also if another entry has the key id.
  package func add(_ entry: ProviderKeyEntry) throws -> Bool {
    try edit { text, entries in
      guard let index = entries.firstIndex(where: { $0.keyID == entry.keyID }) else {
        return (try text.adding(entry), entries + [entry])
      }
      let present = entries[index]
      guard present.isSame(as: entry) else {
        throw CertificateFolderError(
          place: "\(file.path):\(text.line(ofItem: index))",
          problem: "the key id \(entry.keyID) already exists, \(Self.difference(present, entry))",
          repair: "check which one is right; to remove this one: apns-mock key rm \(entry.keyID)")
      }
      return nil
    }
  }

  /// Removes a key, which is no longer trusted from the next start on. The file's comments and order are kept, and
  /// so are key files.
  ///
  /// - Returns: False if no entry has this key id.
  /// - Throws: `CertificateFolderError`.
  package func remove(_ keyID: String) throws -> Bool {
    guard file.exists else { return false }
    return try edit { text, entries in
      guard let index = entries.firstIndex(where: { $0.keyID == keyID }) else { return nil }
      return (try text.removing(at: index), entries.filter { $0.keyID != keyID })
    }
  }

  /// Replaces the file by the text that `change` returns, after checking that it parses to the expected entries.
  ///
  /// - Returns: Whether the file was changed.
  private func edit(
    _ change: (ProviderKeysText, [ProviderKeyEntry]) throws -> (text: String, entries: [ProviderKeyEntry])?
  ) throws -> Bool {
    try FolderLock.holding(folder) {
      try CertificateFolderError.wrapping {
        // Symbolic links, such as a container's to a mounted file, are kept.
        let file = file.resolved
        let bytes = try file.bytes()
        guard let text = String(validating: bytes, as: UTF8.self) else {
          throw CertificateFolderError(place: file.path, problem: "is not in UTF-8", repair: "save it as UTF-8")
        }
        let present = try entries(in: text)
        guard let wanted = try change(try ProviderKeysText(text, YAMLDocument(path: file.path)), present) else {
          return false
        }
        let found = try? entries(in: wanted.text)
        guard let found, found.elementsEqual(wanted.entries, by: { $0.isSame(as: $1) }) else {
          throw CertificateFolderError(
            place: file.path, problem: "has a format that must be edited by hand",
            repair: "write 'keys:' and below it each key as a list item (- key_id: …), then retry")
        }
        try file.replace(with: Array(wanted.text.utf8), isPrivate: !file.isOpenToOthers)
        return true
      }
    }
  }

  private static func difference(_ present: ProviderKeyEntry, _ wanted: ProviderKeyEntry) -> String {
    if !present.publicKey.isSame(as: wanted.publicKey) { return "for another key" }
    if present.teamID != wanted.teamID { return "of the team \(present.teamID)" }
    return "with another environment, or other topics"
  }
}

package import APNSRules
package import TLSEngine
internal import Yams

/// The list of trusted provider keys, `provider.yaml`, which users edit.
package struct ProviderKeysFile: Sendable {
  /// The file's name.
  package static let name = "provider.yaml"
  /// The name of the key file generated at the first start.
  static let ownKeyFile = "AuthKey_\(CertificateFolder.keyID).p8"

  /// The fields of an entry.
  enum Field: String, CaseIterable {
    case keyID = "key_id"
    case teamID = "team_id"
    case publicKey = "public_key"
    case file, environment, topics
    case relatedKeyID = "related_key_id"
  }

  /// The path of the folder, absolute and without symbolic links.
  let folder: String

  /// Creates the list in `folder`.
  package init(folder: String) { self.folder = WholeFile(path: folder).resolved.path }

  /// The file of the list.
  package var file: WholeFile { WholeFile(path: "\(folder)/\(Self.name)") }

  /// Returns all entries in order.
  ///
  /// - Throws: `CertificateFolderError` with the line of the first mistake.
  package func entries() throws -> [ProviderKeyEntry] {
    try CertificateFolderError.wrapping { try entries(in: try file.text()) }
  }

  /// Parses the entries in `text` as if it were the file's content.
  func entries(in text: String) throws -> [ProviderKeyEntry] {
    let document = YAMLDocument(path: file.path)
    var lines: [String: Int] = [:]
    return try ProviderKeysText(text, document).items.map { node in
      let entry = try entry(node, document)
      if let line = lines.updateValue(document.line(node), forKey: entry.keyID) {
        throw document.error(node, "the key id \(entry.keyID) is already in line \(line)", "remove one of them")
      }
      return entry
    }
  }

  /// Returns whether `text` is a valid key id or team id: ten ASCII letters and digits.
  package static func isIdentifier(_ text: String) -> Bool {
    text.utf8.count == 10 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  private func entry(_ node: Node, _ document: YAMLDocument) throws -> ProviderKeyEntry {
    let fields = try document.fields(of: node, allowed: Field.allCases.map(\.rawValue), what: "a key")
    func text(_ field: Field) throws -> String? { try document.text(fields[field.rawValue], field.rawValue) }
    func identifier(_ field: Field) throws -> String? {
      guard let text = try text(field) else { return nil }
      guard Self.isIdentifier(text) else {
        throw document.error(
          fields[field.rawValue] ?? node, "\(field.rawValue) '\(text)' is not ten letters and digits",
          "copy it from Apple's developer account, or use any id of that length")
      }
      return text
    }
    guard let keyID = try identifier(.keyID) else {
      throw document.error(node, "a key has no key_id", "add key_id: with the ten characters in its .p8 file's name")
    }
    guard let teamID = try identifier(.teamID) else {
      throw document.error(node, "the key \(keyID) has no team_id", "add team_id: with the team's ten characters")
    }
    let topics = try document.texts(fields[Field.topics.rawValue], Field.topics.rawValue)
    return ProviderKeyEntry(
      keyID: keyID, teamID: teamID,
      publicKey: try publicKey(keyID, try text(.publicKey), try text(.file), fields, node, document),
      environment: try environment(try text(.environment), fields, document), topics: topics,
      relatedKeyID: try identifier(.relatedKeyID))
  }

  private func environment(
    _ text: String?, _ fields: [String: Node], _ document: YAMLDocument
  ) throws -> PushEnvironment? {
    guard let text, let node = fields[Field.environment.rawValue] else { return nil }
    if text == "development" { return .sandbox }
    guard let environment = PushEnvironment(rawValue: text) else {
      throw document.error(
        node, "unknown environment '\(text)'", "write sandbox or production, or omit it for both")
    }
    return environment
  }

  private func publicKey(
    _ keyID: String, _ pem: String?, _ path: String?, _ fields: [String: Node], _ node: Node, _ document: YAMLDocument
  ) throws -> ES256PublicKey {
    switch (pem, path) {
    case (nil, nil):
      throw document.error(
        node, "the key \(keyID) has neither public_key nor file", "add one of them: \(Self.publicHalf("\(keyID)"))")
    case (_?, _?):
      throw document.error(node, "the key \(keyID) has both public_key and file", "remove one of the two")
    case (let pem?, nil):
      do {
        return try ES256PublicKey(pem: pem)
      } catch {
        throw document.error(
          fields[Field.publicKey.rawValue] ?? node, "public_key of \(keyID) is invalid: \(error)",
          Self.publicHalf(keyID))
      }
    case (nil, let path?):
      return try publicKey(keyID, inFile: path, fields[Field.file.rawValue] ?? node, document)
    }
  }

  private func publicKey(
    _ keyID: String, inFile path: String, _ node: Node, _ document: YAMLDocument
  ) throws -> ES256PublicKey {
    let file = WholeFile(path: path.hasPrefix("/") ? path : "\(folder)/\(path)")
    guard file.exists else {
      throw document.error(node, "there is no file \(file.path)", "create it, or specify the key as public_key:")
    }
    let pem = try file.text()
    do {
      guard pem.contains("PRIVATE KEY-----") else { return try ES256PublicKey(pem: pem) }
      guard file.isInside(folder) else {
        throw document.error(
          node, "\(file.path) is a private key outside this folder",
          "copy it here, or better, specify its public key: \(Self.publicHalf(keyID))")
      }
      return try ES256PrivateKey(pem: pem).publicKey
    } catch let error as TLSError {
      throw document.error(node, "\(file.path) is invalid: \(error)", Self.publicHalf(keyID))
    }
  }

  /// Returns a hint with the command that prints a key's public half.
  private static func publicHalf(_ keyID: String) -> String {
    "to print its public key: openssl pkey -in AuthKey_\(keyID).p8 -pubout"
  }
}

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

extension ProviderKeysFile {
  /// The initial content of the file: the generated key, and instructions for adding keys.
  static let initialText = """
    # The provider keys this server trusts. Only public keys are required. The file is read at the start.
    # apns-mock key add FILE.p8 --key-id K --team-id T adds an entry, also to a running server.
    #
    #   key_id          the key's id, ten characters: the `kid` of a provider token
    #   team_id         the team's id, ten characters: its `iss`
    #   public_key      the public key in PEM, the output of: openssl pkey -in AuthKey_ABC123DEFG.p8 -pubout
    #   file            instead of public_key: a file with the key, relative to this folder; a private key (.p8) only if
    #                   it is in this folder
    #   environment     sandbox or production, for a key that is limited to one of them; default: both
    #   topics          the topics of a topic-specific key; default: all
    #   related_key_id  the key that a topic-specific key may share a connection with; usually absent

    keys:
      # The key for your test provider, created at the first start and valid for all environments and topics.
      - key_id: \(CertificateFolder.keyID)
        team_id: \(CertificateFolder.teamID)
        file: \(ownKeyFile)

      # - key_id: ABC123DEFG
      #   team_id: DEF123GHIJ
      #   environment: sandbox
      #   topics: [com.example.app, com.example.app.voip]
      #   public_key: |
      #     -----BEGIN PUBLIC KEY-----
      #     (two lines of base64)
      #     -----END PUBLIC KEY-----

    """
}

/// A trusted provider key in `provider.yaml`, with its properties in Apple's portal (Protocol.md, section 3.3).
package struct ProviderKeyEntry: Sendable {
  /// The key id of ten letters and digits; the `kid` of its provider tokens.
  package let keyID: String
  /// The team id of ten letters and digits; the `iss` of its provider tokens.
  package let teamID: String
  /// The public key that verifies its provider tokens.
  package let publicKey: ES256PublicKey
  /// The only environment that the key is valid for; nil for both.
  package let environment: PushEnvironment?
  /// The topics of a topic-specific key; nil for all.
  package let topics: [String]?
  /// The id of the key that a topic-specific key may share a connection with.
  package let relatedKeyID: String?

  /// Creates an entry.
  package init(
    keyID: String, teamID: String, publicKey: ES256PublicKey, environment: PushEnvironment? = nil,
    topics: [String]? = nil, relatedKeyID: String? = nil
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.publicKey = publicKey
    self.environment = environment
    self.topics = topics
    self.relatedKeyID = relatedKeyID
  }

  /// Returns whether both entries trust the same key with the same restrictions.
  func isSame(as other: ProviderKeyEntry) -> Bool {
    (keyID, teamID, environment, relatedKeyID) == (other.keyID, other.teamID, other.environment, other.relatedKeyID)
      && topics == other.topics && publicKey.isSame(as: other.publicKey)
  }
}

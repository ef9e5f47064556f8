package import APNSMockRules
internal import APNSMockNotation
package import APNSMockTLSEngine

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
    case teamTopics = "team_topics"
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
  /// - Throws: `CertificateFolderError` with the position of the first mistake.
  package func entries() throws -> [ProviderKeyEntry] {
    try CertificateFolderError.wrapping { try entries(in: try file.text()) }
  }

  /// Parses the entries in `text` as if it were the file's content.
  func entries(in text: String) throws -> [ProviderKeyEntry] {
    try locatingErrors {
      var lines: [String: Int] = [:]
      return try ProviderKeysText(text).items.map { node in
        let entry = try entry(node)
        if let line = lines.updateValue(node.position.line, forKey: entry.keyID) {
          throw YAMLError(
            at: node.position, "the key id \(entry.keyID) is already in line \(line)", hint: "remove one of them")
        }
        return entry
      }
    }
  }

  /// Adds the path of the file to YAML errors.
  private func locatingErrors<Result>(_ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error as YAMLError {
      throw CertificateFolderError(
        location: file.path + (error.position.map { ":\($0.line):\($0.column)" } ?? ""), problem: error.message,
        repair: error.hint ?? "correct the line; lists and maps are indented by spaces, never by tabs")
    }
  }

  /// Returns whether `text` is a valid key id or team id: ten ASCII letters and digits.
  package static func isIdentifier(_ text: String) -> Bool {
    text.utf8.count == 10 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) }
  }

  private func entry(_ node: YAMLNode) throws -> ProviderKeyEntry {
    let fields = try node.fields(allowed: Field.allCases.map(\.rawValue))
    func value(_ field: Field) throws(YAMLError) -> Located? {
      guard let node = fields[field.rawValue], !node.isEmpty else { return nil }
      guard let text = node.text else {
        throw YAMLError(
          at: node.position, "\(field.rawValue): expected a string, not \(node.kind)",
          hint: "write \(field.rawValue): value")
      }
      return Located(text: text, position: node.position)
    }
    func identifier(_ field: Field) throws -> String? {
      guard let value = try value(field) else { return nil }
      guard Self.isIdentifier(value.text) else {
        throw YAMLError(
          at: value.position, "\(field.rawValue) '\(value.text)' is not ten letters and digits",
          hint: "copy it from Apple's developer account, or use any id of that length")
      }
      return value.text
    }
    guard let keyID = try identifier(.keyID) else {
      throw YAMLError(
        at: node.position, "a key has no key_id", hint: "add key_id: with the ten characters in its .p8 file's name")
    }
    guard let teamID = try identifier(.teamID) else {
      throw YAMLError(
        at: node.position, "the key \(keyID) has no team_id", hint: "add team_id: with the team's ten characters")
    }
    let publicKey: ES256PublicKey
    switch (try value(.publicKey), try value(.file)) {
    case (nil, nil):
      throw YAMLError(
        at: node.position, "the key \(keyID) has neither public_key nor file",
        hint: "add one of them: \(Self.publicHalf(keyID))")
    case (_?, _?):
      throw YAMLError(at: node.position, "the key \(keyID) has both public_key and file", hint: "remove one of the two")
    case (let pem?, nil):
      do {
        publicKey = try ES256PublicKey(pem: pem.text)
      } catch {
        throw YAMLError(
          at: pem.position, "public_key of \(keyID) is invalid: \(error)", hint: Self.publicHalf(keyID))
      }
    case (nil, let path?): publicKey = try self.publicKey(keyID, inFile: path)
    }
    let topics = try topics(fields[Field.topics.rawValue], .topics)
    let teamTopics = try self.topics(fields[Field.teamTopics.rawValue], .teamTopics)
    if topics != nil, teamTopics != nil {
      throw YAMLError(
        at: node.position, "the key \(keyID) has both topics and team_topics",
        hint: "write topics for a topic-specific key, team_topics for a key that is valid for all topics of its team")
    }
    return ProviderKeyEntry(
      keyID: keyID, teamID: teamID, publicKey: publicKey, environment: try environment(try value(.environment)),
      topics: topics, teamTopics: teamTopics, relatedKeyID: try identifier(.relatedKeyID))
  }

  /// A string and its position in the file.
  private struct Located {
    let text: String
    let position: TextPosition
  }

  private func environment(_ value: Located?) throws(YAMLError) -> PushEnvironment? {
    guard let value else { return nil }
    if value.text == "development" { return .sandbox }
    guard let environment = PushEnvironment(rawValue: value.text) else {
      throw YAMLError(
        at: value.position, "unknown environment '\(value.text)'",
        hint: "write sandbox or production, or omit it for both")
    }
    return environment
  }

  private func topics(_ node: YAMLNode?, _ field: Field) throws(YAMLError) -> [String]? {
    guard let node, !node.isEmpty else { return nil }
    let name = field.rawValue
    let hint = "write \(name): [first, second], or omit it"
    guard case .list(let elements) = node.content, !elements.isEmpty else {
      throw YAMLError(at: node.position, "\(name): expected a list of strings", hint: hint)
    }
    return try elements.map { element throws(YAMLError) in
      guard let text = element.text, !element.isEmpty else {
        throw YAMLError(at: element.position, "\(name): expected a string, not \(element.kind)", hint: hint)
      }
      return text
    }
  }

  private func publicKey(_ keyID: String, inFile path: Located) throws -> ES256PublicKey {
    let file = WholeFile(path: path.text.hasPrefix("/") ? path.text : "\(folder)/\(path.text)")
    guard file.exists else {
      throw YAMLError(
        at: path.position, "there is no file \(file.path)", hint: "create it, or specify the key as public_key:")
    }
    let pem = try file.text()
    do {
      guard pem.contains("PRIVATE KEY-----") else { return try ES256PublicKey(pem: pem) }
      guard file.isInside(folder) else {
        throw YAMLError(
          at: path.position, "\(file.path) is a private key outside this folder",
          hint: "copy it here, or better, specify its public key: \(Self.publicHalf(keyID))")
      }
      return try ES256PrivateKey(pem: pem).publicKey
    } catch let error as TLSError {
      throw YAMLError(at: path.position, "\(file.path) is invalid: \(error)", hint: Self.publicHalf(keyID))
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
          location: "\(file.path):\(text.items[index].position.line)",
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
          throw CertificateFolderError(location: file.path, problem: "is not in UTF-8", repair: "save it as UTF-8")
        }
        let present = try entries(in: text)
        guard let wanted = try locatingErrors({ try change(try ProviderKeysText(text), present) }) else { return false }
        let found = try? entries(in: wanted.text)
        guard let found, found.elementsEqual(wanted.entries, by: { $0.isSame(as: $1) }) else {
          throw CertificateFolderError(
            location: file.path, problem: "has a format that must be edited by hand",
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

extension YAMLNode {
  /// Returns the values of a map by key.
  ///
  /// - Throws: `YAMLError` for a key that is not in `allowed`.
  func fields(allowed: [String]) throws(YAMLError) -> [String: YAMLNode] {
    var fields: [String: YAMLNode] = [:]
    for entry in try entries() {
      guard allowed.contains(entry.key) else {
        let guess = Spelling.nearest(to: entry.key, among: allowed).map { "did you mean \($0)? " } ?? ""
        throw YAMLError(
          at: entry.position, "unknown key '\(entry.key)'",
          hint: "\(guess)expected one of \(Spelling.choices(for: entry.key, among: allowed))")
      }
      fields[entry.key] = entry.value
    }
    return fields
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
    #   team_topics     the topics that the team is known to have, for serve --topics known; they do not restrict the key
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
  /// The topics that the team is known to have, which do not restrict the key; nil for none.
  package let teamTopics: [String]?
  /// The id of the key that a topic-specific key may share a connection with.
  package let relatedKeyID: String?

  /// Creates an entry.
  package init(
    keyID: String, teamID: String, publicKey: ES256PublicKey, environment: PushEnvironment? = nil,
    topics: [String]? = nil, teamTopics: [String]? = nil, relatedKeyID: String? = nil
  ) {
    self.keyID = keyID
    self.teamID = teamID
    self.publicKey = publicKey
    self.environment = environment
    self.topics = topics
    self.teamTopics = teamTopics
    self.relatedKeyID = relatedKeyID
  }

  /// Returns whether both entries trust the same key with the same restrictions.
  func isSame(as other: ProviderKeyEntry) -> Bool {
    (keyID, teamID, environment, relatedKeyID) == (other.keyID, other.teamID, other.environment, other.relatedKeyID)
      && topics == other.topics && teamTopics == other.teamTopics && publicKey.isSame(as: other.publicKey)
  }
}

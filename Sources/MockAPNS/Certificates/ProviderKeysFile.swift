internal import APNSRules
internal import TLSEngine
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

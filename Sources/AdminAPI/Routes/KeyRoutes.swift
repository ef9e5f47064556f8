internal import APNSMockRules
internal import Hummingbird
internal import MockAPNS
internal import APNSMockTLSEngine
internal import APNSMockNotation

/// The provider key to trust.
struct KeyRequest {
  var keyID: String?
  // The key id is compared with that of the path before these are required.
  var teamID: String?
  var publicKey: String?
  var environment: PushEnvironment?
  var topics: [String]?
  var teamTopics: [String]?
  var relatedKeyID: String?

  static let schema = MapSchema(
    "KeyRequest", KeyRequest(),
    .optional("key_id", \.keyID, .text, "The id in the path, or absent."),
    .optional("team_id", \.teamID, .text, "The id of the team: ten letters and digits. Required."),
    .optional("public_key", \.publicKey, .text, "PEM, from openssl pkey -in AuthKey.p8 -pubout. Required."),
    .optional("environment", \.environment, .word, default: "both", "The environment that the key is limited to."),
    .optional("topics", \.topics, .texts, default: "all", "The topics of a topic-specific key."),
    .optional(
      "team_topics", \.teamTopics, .texts,
      "Topics that the team is known to have, for `--topics known`. They do not restrict the key."),
    .optional(
      "related_key_id", \.relatedKeyID, .text, "The key that a topic-specific key may share a connection with."))
}

/// Routes for the trusted provider keys, of which the server needs only the public halves.
struct KeyRoutes: Sendable {
  let state: ServerState

  private var keys: PublishedValue<TrustedKeySet> { state.keys }

  var routes: [Route] { [.get("/keys", list), .put("/keys/:key_id", set), .delete("/keys/:key_id", remove)] }

  private func list(_ request: Request, _ context: AdminContext) throws -> Response {
    let keys = keys.load().keys.values.sorted { $0.keyID < $1.keyID }
    return try ListPage(request).response(keys, by: \.keyID, TrustedKey.write)
  }

  private func set(_ request: Request, _ context: AdminContext) async throws -> Response {
    let keyID = try Self.identifier(context.parameters.get("key_id") ?? "", "key_id")
    let body = try await JSONBody(request).parse(KeyRequest.schema.parse)
    if let other = body.keyID, other != keyID {
      throw Problem.badRequest("the body is about another key than the path", hint: "Omit key_id in the body.")
    }
    try Self.check(body.topics, "topics")
    try Self.check(body.teamTopics, "team_topics")
    guard body.topics == nil || body.teamTopics == nil else {
      throw Problem.badRequest(
        "the body has both topics and team_topics",
        hint: "topics restrict a topic-specific key; team_topics are known topics of the team and restrict nothing.")
    }
    let key = TrustedKey(
      keyID: keyID,
      teamID: try Self.identifier(
        try Self.required(body.teamID, "team_id", hint: "Use the team's ten characters."), "team_id"),
      publicKey: try Self.publicKey(
        try Self.required(body.publicKey, "public_key", hint: Self.publicHalf(keyID)), keyID),
      environment: body.environment, topics: body.topics, teamTopics: body.teamTopics,
      relatedKeyID: try body.relatedKeyID.map { text throws(Problem) in try Self.identifier(text, "related_key_id") })
    let result = keys.add(key)
    guard result != .limitReached else {
      throw Problem(
        status: .conflict, detail: "\(TrustedKeySet.limit) keys are trusted, which is the limit",
        hint: "Remove keys that are no longer needed: DELETE /api/v1/keys/{key_id}.")
    }
    state.didChange(key: keyID)
    return .stored(at: "/keys/\(keyID)", isNew: result == .added) { $0.object(key.write) }
  }

  private func remove(_ request: Request, _ context: AdminContext) throws -> Response {
    let keyID = context.parameters.get("key_id") ?? ""
    let wasTrusted = keys.update { trusted in
      guard trusted.keys[keyID] != nil else { return false }
      trusted = trusted.removing(keyID)
      return true
    }
    guard wasTrusted else {
      let known = keys.load().keys.keys.sorted().listed(20)
      throw Problem.notFound("no key with id \(keyID) is trusted", hint: "Those that are: \(known).")
    }
    state.didChange(key: keyID)
    return Response(status: .noContent)
  }

  private static func required(_ text: String?, _ name: String, hint: String) throws(Problem) -> String {
    guard let text else { throw .badRequest("the body lacks \(name)", hint: hint) }
    return text
  }

  /// Checks the topics of a key.
  ///
  /// - Throws: `Problem` (400) for more topics than Apple allows per key (Protocol.md, section 3.3), or a topic that
  ///   is too long.
  private static func check(_ topics: [String]?, _ name: String) throws(Problem) {
    if let count = topics?.count, count > TrustedKey.topicsLimit {
      throw .badRequest(
        "\(name) has \(count) topics",
        hint: "A key has at most \(TrustedKey.topicsLimit) topics. Omit topics to trust the key for all topics.")
    }
    guard topics?.allSatisfy({ $0.utf8.count <= Rulebook.topicLimit }) ?? true else {
      throw .badRequest(
        "\(name) has a topic of more than \(Rulebook.topicLimit) bytes",
        hint: "APNs accepts at most \(Rulebook.topicLimit) bytes.")
    }
  }

  private static func identifier(_ text: String, _ name: String) throws(Problem) -> String {
    guard ProviderKeysFile.isIdentifier(text) else {
      throw .badRequest(
        "\(name) \"\(text.prefix(80))\" is not ten letters and digits",
        hint: "Copy it from Apple's developer account.")
    }
    return text
  }

  private static func publicKey(_ pem: String, _ keyID: String) throws(Problem) -> ES256PublicKey {
    if pem.contains("PRIVATE KEY") {
      throw .badRequest(
        "public_key is a PRIVATE key; it was not stored, but it was sent in clear text: revoke it if it is a real one",
        hint: publicHalf(keyID))
    }
    do {
      return try ES256PublicKey(pem: pem)
    } catch {
      throw .badRequest("public_key is invalid: \(error)", hint: publicHalf(keyID))
    }
  }

  private static func publicHalf(_ keyID: String) -> String {
    "Use the public half in PEM, from: openssl pkey -in AuthKey_\(keyID).p8 -pubout"
  }
}

extension TrustedKey {
  /// Writes the key's members, without the public key.
  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("key_id", keyID)
    writer.member("team_id", teamID)
    writer.member("environment", environment?.rawValue)
    for (name, topics) in [("topics", topics), ("team_topics", teamTopics)] {
      if let topics { writer.member(name, topics) } else { writer.nullMember(name) }
    }
    writer.member("related_key_id", relatedKeyID)
  }
}

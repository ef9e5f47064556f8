internal import APNSMockNotation
internal import MockAPNS

/// The connections that a command applies to. A request must specify them explicitly.
struct ConnectionScope: Sendable {
  /// The ids of the connections; nil for any.
  let ids: Set<String>?
  private let listener: Int?
  private let client: String?

  /// The members of a request that specify the scope.
  private struct Members {
    var all = false
    var ids: [String]?
    var listener: Int?
    var client: String?
  }

  /// Parses the scope in a request body.
  ///
  /// - Parameters:
  ///   - listeners: The number of listeners for providers.
  ///   - others: The members of the body that are read elsewhere.
  /// - Throws: `Problem` (400).
  init(_ body: JSONBody, listeners: Int, beside others: [String] = []) throws(Problem) {
    var fields: [Field<Members>] = [
      .defaulted("all", \.all, .flag, "Whether all connections are meant."),
      .optional("connection", \.ids, .textOrTexts, "The ids of connections, such as c17."),
      .optional("listener", \.listener, .integer(0...max(0, listeners - 1)), "The index of a listener, from 0."),
      .optional("client", \.client, .text, "The address of a client, with or without its port."),
    ]
    for name in others { fields.append(.custom(name, \.self, .json, "", parse: { _, _, _ in true })) }
    let members = try body.parse(MapSchema("ConnectionScope", Members(), fields: fields).parse)
    (ids, listener, client) = (members.ids.map(Set.init), members.listener, members.client)
    switch (members.all, ids != nil || listener != nil || client != nil) {
    case (false, false):
      throw .badRequest(
        "the body specifies no connections",
        hint: #"Send {"all": true}, or connection (an id such as "c17", or several), listener or client."#)
    case (true, true):
      throw .badRequest(
        "all excludes connection, listener and client", hint: "Omit all to select only those.")
    default: break
    }
    if ids?.isEmpty == true {
      throw .badRequest("connection is an empty list", hint: "Specify at least one, such as \"c17\".")
    }
  }

  /// Returns whether a connection is in scope. `client` matches its address with or without the port.
  func contains(_ log: ConnectionLog) -> Bool {
    if let ids, !ids.contains(log.id) { return false }
    if let listener, listener != log.listener { return false }
    if let client, client != log.client, client != log.clientAddress { return false }
    return true
  }
}

internal import MockAPNS

/// The connections that a command applies to. A request must specify them explicitly.
struct ConnectionScope: Sendable {
  /// The body members that specify the scope.
  static let members = ["all", "connection", "listener", "client"]

  /// The ids of the connections; nil for any.
  let ids: Set<String>?
  private let listener: Int?
  private let client: String?

  /// Parses the scope in a request body.
  ///
  /// - Parameter listeners: The number of listeners for providers.
  /// - Throws: `Problem` (400).
  init(_ body: JSONBody, listeners: Int) throws(Problem) {
    let all = try body.flag("all") ?? false
    ids = try body.textOrTexts("connection").map(Set.init)
    listener = try body.whole("listener", in: 0...Int64(max(0, listeners - 1))).map(Int.init)
    client = try body.text("client")
    switch (all, ids != nil || listener != nil || client != nil) {
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

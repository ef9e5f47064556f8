internal import MockAPNS

/// Which connections something is done to. Somebody has to say so: nothing is meant by leaving it out.
struct ConnectionScope: Sendable {
  /// The members of a body that say it.
  static let members = ["all", "connection", "listener", "client"]

  /// By their ids; nil for any.
  let ids: Set<String>?
  private let listener: Int?
  private let client: String?

  /// Reads it from a body.
  ///
  /// - Parameter listeners: how many APNs listeners there are.
  /// - Throws: `Problem` (400).
  init(_ body: JSONBody, listeners: Int) throws(Problem) {
    let all = try body.flag("all") ?? false
    ids = try body.textOrTexts("connection").map(Set.init)
    listener = try body.whole("listener", in: 0...Int64(max(0, listeners - 1))).map(Int.init)
    client = try body.text("client")
    switch (all, ids != nil || listener != nil || client != nil) {
    case (false, false):
      throw .badRequest(
        "nothing says which connections are meant",
        hint: #"Send {"all": true}, or connection (an id such as "c17", or several), listener or client."#)
    case (true, true):
      throw .badRequest(
        "all stands beside connection, listener or client", hint: "Leave out all to reach those alone.")
    default: break
    }
    if ids?.isEmpty == true { throw .badRequest("connection is an empty list", hint: "Name one, such as \"c17\".") }
  }

  /// Whether a connection is meant. `client` is its address with or without the port.
  func contains(_ log: ConnectionLog) -> Bool {
    if let ids, !ids.contains(log.id) { return false }
    if let listener, listener != log.listener { return false }
    if let client, client != log.client, client != log.clientAddress { return false }
    return true
  }
}

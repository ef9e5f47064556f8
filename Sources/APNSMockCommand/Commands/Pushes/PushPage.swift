/// A page of the inbox, with the members that commands show.
struct PushPage: Decodable {
  var items: [Push]
  var matched: Int
  var evicted: Int
}

/// A push in a response of the admin API.
struct Push: Decodable {
  var seq: Int
  var receivedAt: String?
  var outcome: String
  var request: Request
  var apns: Fields
  var served: Served

  struct Request: Decodable {
    var deviceToken: String?
  }

  struct Fields: Decodable {
    var id: String?
    var topic: String?
    var pushType: String?
  }

  struct Served: Decodable {
    var status: Int?
    var reason: String?
  }

  /// Returns a table of pushes, with the rejected ones in red.
  static func table(_ pushes: [Push]) -> Table<Push> {
    Table(
      rows: pushes,
      columns: [
        .init("SEQ") { String($0.seq) },
        .init("RECEIVED", shortened: { $0.count > 12 ? String($0.dropFirst(11).dropLast()) : $0 }, \.receivedAt),
        .init("STATUS") { $0.served.status.map(String.init) ?? $0.outcome },
        .init("REASON", \.served.reason),
        .init("TYPE", \.apns.pushType),
        .init("TOPIC", \.apns.topic),
        .init("DEVICE", shortened: { $0.count > 12 ? "\($0.prefix(6))…\($0.suffix(4))" : $0 }, \.request.deviceToken),
        .init("APNS-ID", \.apns.id),
      ],
      color: { $0.served.status == 200 ? nil : .red })
  }
}

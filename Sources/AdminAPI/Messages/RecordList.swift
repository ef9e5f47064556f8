internal import APNSMockRules
internal import Hummingbird
internal import APNSMockInbox
internal import NIOCore
internal import APNSMockNotation

/// Records as the member `items` of a JSON object, rendered in pieces so that only a few of them are buffered for a slow
/// client. Most records of an inbox with a store are read at the client's pace too: they are in the state of that moment,
/// and records that were deleted before that are omitted.
struct RecordList: Sendable {
  /// The maximum size of the records of a store that are in memory before the first piece is rendered, in bytes.
  static let maxBytes = 64 * 1024
  /// The number of further records that are read at a time.
  private static let groupSize = 16

  /// The members of each record; nil for all.
  var fields: RecordMembers?
  private let rulebook: Rulebook
  private let inbox: Inbox
  /// The records to render, of those in memory.
  private var records: ArraySlice<Record>
  /// The `seq` of the records to read and to render after those.
  private var unread: ArraySlice<Int>
  private var progress = Progress.beginning
  /// What precedes and what follows the records.
  private var opening: [UInt8] = []
  private var closing: [UInt8] = []

  private enum Progress {
    case beginning, beforeFirstRecord, afterRecord, ended
  }

  /// - Parameter unread: The `seq` of further records, which are not in memory.
  init(_ records: [Record], unread: [Int], rulebook: Rulebook, inbox: Inbox) {
    self.rulebook = rulebook
    self.inbox = inbox
    self.records = records[...]
    self.unread = unread[...]
  }

  /// Returns the response with an object of these records and of other members, of which there is at least one after them:
  /// with a content length if it is one piece, otherwise streamed at the client's pace.
  ///
  /// - Parameters:
  ///   - membersBefore: Writes the members before `items`.
  ///   - membersAfter: Writes the members after `items`.
  ///   - isCompressed: Whether the response is compressed, for clients that accept that; only for few records.
  func response(
    status: HTTPResponse.Status = .ok, isCompressed: Bool = false, before membersBefore: (inout JSONWriter) -> Void,
    after membersAfter: (inout JSONWriter) -> Void
  ) throws -> Response {
    var rest = self
    var writer = JSONWriter()
    writer.object { writer in
      membersBefore(&writer)
      writer.arrayMember("items") { _ in }
    }
    // Without the ends of the array and the object.
    rest.opening = writer.bytes.dropLast(2)
    writer = JSONWriter()
    writer.object(membersAfter)
    // Without the beginning of the object.
    rest.closing = Array("],".utf8) + writer.bytes.dropFirst()
    var headers: HTTPFields = [.contentType: JSONBody.type]
    if isCompressed {
      var text: [UInt8] = []
      while let piece = try rest.next() { text += piece.readableBytesView }
      (headers[.contentEncoding], headers[.vary]) = ("gzip", "accept-encoding")
      let body = ResponseBody(byteBuffer: ByteBuffer(bytes: Gzip.compressed(text)))
      return Response(status: status, headers: headers, body: body)
    }
    let first = try rest.next() ?? ByteBuffer()
    if rest.progress == .ended {
      return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: first))
    }
    let eventLoop = DisconnectCancellation.channel?.eventLoop
    return Response(
      status: status, headers: headers,
      body: ResponseBody { [rest] writer in
        var rest = rest
        try await writer.write(first)
        while let piece = try await QueryExecutor.step({ try rest.next() }) {
          try await writer.write(piece, atPaceOf: eventLoop)
        }
        try await writer.finish(nil)
      })
  }

  /// Renders the next piece, which usually needs at most one read of the store; nil after the last one.
  private mutating func next() throws(StoreUnavailable) -> ByteBuffer? {
    guard progress != .ended else { return nil }
    var piece = ByteBuffer()
    if progress == .beginning {
      piece.writeBytes(opening)
      progress = .beforeFirstRecord
    }
    // A piece ends with the record that reaches its size.
    while piece.readableBytes < Response.pieceSize {
      guard let record = try nextRecord() else {
        progress = .ended
        piece.writeBytes(closing)
        return piece
      }
      if progress == .afterRecord { piece.writeString(",") }
      progress = .afterRecord
      var writer = JSONWriter(capacity: 2048)
      if let fields {
        fields.write(record, to: &writer, rulebook: rulebook, in: inbox)
      } else {
        record.write(to: &writer, rulebook: rulebook, in: inbox)
      }
      piece.writeBytes(writer.bytes)
      if records.isEmpty, !unread.isEmpty { break }
    }
    return piece
  }

  /// Returns the next record; nil after the last one.
  private mutating func nextRecord() throws(StoreUnavailable) -> Record? {
    while records.isEmpty, !unread.isEmpty {
      records = try inbox.snapshot().records(unread.prefix(Self.groupSize))[...]
      unread = unread.dropFirst(Self.groupSize)
    }
    return records.popFirst()
  }
}

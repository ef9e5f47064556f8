package import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage
internal import APNSMockNotation

/// A row of the table `push` that is written.
package protocol RowWriter {
  /// Sets a column to null.
  mutating func setNull(_ column: RecordColumn)
  /// Sets a column to a number.
  mutating func set(_ column: RecordColumn, _ number: Int64)
  /// Sets a column to a text in UTF-8, and copies it.
  mutating func set(_ column: RecordColumn, text: UnsafeRawBufferPointer)
  /// Sets a column to bytes. They need not be copied: they are valid until the record is released.
  ///
  /// - Parameter isText: Whether they are text in UTF-8.
  mutating func set(_ column: RecordColumn, bytes: UnsafeRawBufferPointer, isText: @autoclosure () -> Bool)
}

extension RowWriter {
  fileprivate mutating func set(_ column: RecordColumn, _ number: Int64?) {
    if let number { set(column, number) } else { setNull(column) }
  }

  fileprivate mutating func set(_ column: RecordColumn, _ text: String?) {
    guard var text else { return setNull(column) }
    text.withUTF8 { set(column, text: UnsafeRawBufferPointer($0)) }
  }

  /// Sets a column to bytes that are expected to be text.
  fileprivate mutating func set(_ column: RecordColumn, header: UnsafeRawBufferPointer?) {
    guard let header else { return setNull(column) }
    if header.allSatisfy({ $0 < 0x80 }) {
      set(column, text: header)
    } else {
      set(column, String(decoding: header, as: UTF8.self))
    }
  }
}

extension RecordColumn {
  /// All columns in the order in which `Record.write` sets them, each once.
  package static let inOrderOfWriting: [RecordColumn] = [
    .seq, .receivedAt, .arrivedAt, .kind, .attempt, .pushKey, .payloadSize, .stream, .connection, .token, .checks,
    .deviceToken, .topic, .pushType, .collapseID, .apnsID, .idOrigin, .priority, .credential, .verdictStatus,
    .failedCheck, .verdictReason, .detail, .unregisteredAt, .findings, .headers, .payload, .finishedAt,
    .decision, .ending, .outcome, .accepted, .status, .reason, .delivery, .latency, .rule, .details,
  ]
}

extension Record {
  /// Writes all columns of the record, in the order `RecordColumn.inOrderOfWriting`.
  ///
  /// - Parameters:
  ///   - connection: The `id` of the row with its connection.
  ///   - token: The `id` of the row with its provider token; nil without one.
  ///   - checks: The `id` of the row with its applicable checks; nil without a verdict.
  package borrowing func write(to row: inout some RowWriter, connection: Int64, token: Int64?, checks: Int64?) {
    row.set(.seq, Int64(seq))
    row.set(.receivedAt, receivedAt)
    row.set(.arrivedAt, arrivedAt)
    row.set(.kind, kind.rawValue)
    row.set(.attempt, Int64(attempt))
    row.set(.pushKey, Int64(bitPattern: pushKey.number))
    row.set(.payloadSize, Int64(bodySize))
    row.set(.stream, Int64(stream))
    row.set(.connection, connection)
    row.set(.token, token)
    row.set(.checks, checks)
    let facts = facts
    if withHeader(facts.deviceToken, { $0?.contains { (0x41...0x5A).contains($0) } ?? false }) {
      row.set(.deviceToken, deviceToken)
    } else {
      withHeader(facts.deviceToken) { row.set(.deviceToken, header: $0) }
    }
    withTopic { row.set(.topic, header: $0) }
    withHeader(facts.pushTypeText) { row.set(.pushType, header: $0) }
    withHeader(facts.collapseID) { row.set(.collapseID, header: $0) }
    withID { row.set(.apnsID, header: $0) }
    row.set(.idOrigin, withID { $0 == nil } ? nil : head { $0.idSize } > 0 ? "server" : "client")
    row.set(.priority, priority.map { Int64($0) })
    writeVerdict(to: &row)
    row.set(.findings, importedFindingNames?.joined(separator: ","))
    withHeaders { row.set(.headers, bytes: $0, isText: false) }
    withBody { row.set(.payload, bytes: $0, isText: $0.isText) }
    writeResult(to: &row)
  }
}

extension Record {
  /// Writes the columns that may change after the record was written.
  package borrowing func writeResult(to row: inout some RowWriter) {
    let response = sentResponse
    row.set(.finishedAt, finishedAt)
    row.set(.decision, end.decision.rawValue)
    row.set(.ending, end.ending.rawValue)
    row.set(.outcome, outcome.rawValue)
    row.set(.accepted, accepted ? 1 : 0)
    row.set(.status, response.status.map { Int64($0) })
    row.set(.reason, sentReason)
    row.set(.delivery, delivery?.text)
    row.set(.latency, response.latencyNanoseconds)
    row.set(.rule, wireDetails?.injections.first?.rule)
    guard wireDetails != nil || !isRequestComplete else { return row.setNull(.details) }
    row.set(.details, String(decoding: details(wireDetails ?? WireDetails()), as: UTF8.self))
  }

  private borrowing func writeVerdict(to row: inout some RowWriter) {
    guard let verdict else {
      for column in [RecordColumn.credential, .verdictStatus, .failedCheck, .verdictReason, .detail, .unregisteredAt] {
        row.setNull(column)
      }
      return
    }
    row.set(.credential, verdict.credential.name)
    row.set(.verdictStatus, Int64(verdict.status))
    row.set(.failedCheck, verdict.failed?.name)
    row.set(.verdictReason, verdict.reason?.text)
    row.set(.detail, verdict.isAccepted ? nil : detail(of: verdict))
    row.set(.unregisteredAt, verdict.timestamp)
  }

  /// The hashes of the device token and of the `apns-id`; nil for one that the request has not.
  package var hashes: (deviceToken: UInt32?, id: UInt32?) {
    (withHeader(facts.deviceToken) { $0.map { StoredHash.of($0) } }, withID { $0.map { StoredHash.of($0) } })
  }

  /// The names of the profiles, rules and reasons in the record that are not those of APNs.
  package borrowing func usedNames() -> [String] {
    guard let wireDetails else { return [] }
    let injections = wireDetails.injections
    return injections.map(\.rule) + injections.compactMap(\.profile) + [wireDetails.unusualReason].compactMap(\.self)
  }

  private borrowing func details(_ details: WireDetails) -> [UInt8] {
    let record = copy self
    var writer = JSONWriter()
    writer.object { writer in
      record.writeFault(to: &writer)
      writer.objectMember("served", record.writeServed)
      record.writeUpstream(to: &writer)
      if !record.isRequestComplete { writer.member("incomplete", true) }
      if let violation = details.violation {
        writer.objectMember("violation") { writer in
          switch violation {
          case .afterGoAway(let lastStream, let nanoseconds):
            writer.member("last_stream", lastStream)
            writer.member("after_goaway_ns", nanoseconds)
          case .excessStreams(let limit): writer.member("excess_streams", limit)
          case .malformed(let text): writer.member("malformed", text)
          }
        }
      }
      writer.member("ended_ns", details.endedAt)
    }
    return writer.bytes
  }
}

extension WireDetails.ProtocolViolation {
  init?(_ json: inout JSONReader) throws(JSONText.Problem) {
    var lastStream: Int32 = 0
    var delay: Int64?
    var limit: UInt32?
    var text: String?
    try json.object { name, json throws(JSONText.Problem) in
      switch name {
      case "last_stream": lastStream = try json.whole()
      case "after_goaway_ns": delay = try json.wholeOrNull()
      case "excess_streams": limit = try json.wholeOrNull()
      case "malformed": text = try json.text()
      default: break
      }
    }
    if let delay {
      self = .afterGoAway(lastStream: lastStream, nanoseconds: delay)
    } else if let limit {
      self = .excessStreams(limit: limit)
    } else if let text {
      self = .malformed(text)
    } else {
      return nil
    }
  }
}

extension Verdict.Credential {
  /// Creates a kind of credential from the name in a record.
  init(name: String) {
    self =
      switch name {
      case Self.token.name: .token
      case Self.certificate.name: .certificate
      default: .none
      }
  }
}

extension ProviderCertificate {
  /// The certificate as JSON.
  package var json: String {
    var writer = JSONWriter()
    writer.object { write(to: &$0) }
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads a certificate from JSON; nil if it is invalid.
  package init?(json text: String) {
    var text = text
    let certificate = text.withUTF8 { bytes in
      var json = JSONReader(UnsafeRawBufferPointer(bytes))
      return try? ProviderCertificate(&json)
    }
    guard let certificate else { return nil }
    self = certificate
  }
}

extension UnsafeRawBufferPointer {
  /// Whether the bytes are UTF-8 without zeros, which many programs take for the end of a text.
  fileprivate var isText: Bool {
    firstPosition(of: 0) == nil && (isASCII || String(validating: self, as: UTF8.self) != nil)
  }

  /// Whether all bytes are ASCII characters. Eight bytes are tested at once, because this is done for each payload.
  private var isASCII: Bool {
    var offset = 0
    while offset + 8 <= count {
      guard loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0 else { return false }
      offset += 8
    }
    return self[offset...].allSatisfy { $0 < 0x80 }
  }
}

internal import APNSRules
internal import HTTPMessage

/// What never changes of a record, in one piece of memory: behind the head stand the packed header fields, the body as far
/// as it was kept and the generated id, in this order and without gaps.
typealias RecordContent = ManagedBuffer<RecordHead, UInt8>

/// What an export says about a push, which nobody judges again. It stands apart so that other records do not grow by it.
final class ToldJudgement: Sendable {
  let verdict: Verdict?
  let facts: PushFacts
  let findings: [String]

  /// What it takes in memory.
  static let size = 16 + MemoryLayout<Verdict?>.stride + MemoryLayout<PushFacts>.stride + 8

  init(verdict: Verdict?, facts: PushFacts, findings: [String]) {
    self.verdict = verdict
    self.facts = facts
    self.findings = findings
  }
}

/// What is known about the bytes of a record.
struct RecordHead: Sendable {
  /// A verdict has the facts in it; they are kept once.
  enum Judgement: Sendable {
    case verdict(Verdict)
    case unjudged(PushFacts)
    /// What an export says.
    case told(ToldJudgement)
  }

  let connection: ConnectionFacts
  let judgement: Judgement
  let receivedAt: Int64
  let arrivedAt: Int64
  /// How many bytes of body came in all.
  let bodySize: UInt32
  let stream: Int32
  let headerSize: UInt16
  let keptBodySize: UInt16
  let idSize: UInt8

  /// How many bytes stand behind it.
  var byteCount: Int { Int(headerSize) + Int(keptBodySize) + Int(idSize) }

  /// Where the body stands in them.
  var bodyRange: Range<Int> { Int(headerSize)..<Int(headerSize) + Int(keptBodySize) }
}

extension RecordContent {
  /// The one allocation of a record. What is longer than its size in the head is cut.
  static func make(
    _ request: borrowing HTTPRequest, _ verdict: Verdict?, _ facts: PushFacts, _ generatedID: ArraySlice<UInt8>,
    _ connection: ConnectionFacts, receivedAt: Int64, arrivedAt: Int64, told: ToldJudgement? = nil
  ) -> RecordContent {
    let (stream, bodySize) = (request.stream, UInt32(clamping: request.bodySize))
    let headerSize = UInt16(clamping: request.headers.bytes.count)
    let keptBodySize = UInt16(clamping: request.body.count)
    let idSize = UInt8(clamping: generatedID.count)
    let bodyEnd = Int(headerSize) + Int(keptBodySize)
    let content = create(minimumCapacity: bodyEnd + Int(idSize)) { _ in
      RecordHead(
        connection: connection,
        judgement: told.map { .told($0) } ?? verdict.map { .verdict($0) } ?? .unjudged(facts), receivedAt: receivedAt,
        arrivedAt: arrivedAt, bodySize: bodySize, stream: stream, headerSize: headerSize, keptBodySize: keptBodySize,
        idSize: idSize)
    }
    content.withUnsafeMutablePointerToElements { elements in
      let target = UnsafeMutableRawBufferPointer(start: elements, count: bodyEnd + Int(idSize))
      let headers = UnsafeMutableRawBufferPointer(rebasing: target[..<Int(headerSize)])
      request.headers.bytes.withUnsafeBytes { headers.fill(from: $0) }
      facts.blankSignatures(in: headers)
      let body = UnsafeMutableRawBufferPointer(rebasing: target[Int(headerSize)..<bodyEnd])
      request.body.withUnsafeBytes { body.fill(from: $0) }
      let id = UnsafeMutableRawBufferPointer(rebasing: target[bodyEnd...])
      generatedID.withUnsafeBytes { id.fill(from: $0) }
    }
    return content
  }
}

extension UnsafeMutableRawBufferPointer {
  fileprivate func fill(from source: UnsafeRawBufferPointer) {
    copyMemory(from: UnsafeRawBufferPointer(rebasing: source.prefix(count)))
  }
}

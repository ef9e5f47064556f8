internal import APNSRules
internal import HTTPMessage

/// What never changes of a record, in one piece of memory: behind the head stand the packed header fields, the body as far
/// as it was kept, the generated id, and the findings that an export tells, in this order and without gaps.
struct RecordContent {
  // Keeps the memory there that `head` points to.
  private let slab: RecordSlab
  /// To be read by way of `with`, which sees to it that it stays.
  let head: UnsafeMutablePointer<RecordHead>

  /// Of heads, and so of all that stands in a slab.
  static let alignment = MemoryLayout<RecordHead>.alignment

  /// What a head with so many bytes behind it takes of a slab.
  static func size(bytes count: Int) -> Int {
    (MemoryLayout<RecordHead>.stride + count + alignment - 1) / alignment * alignment
  }

  /// Calls `read` with the head and the first byte behind it.
  @inline(__always)
  func with<Result>(_ read: (UnsafePointer<RecordHead>, UnsafeRawPointer) -> Result) -> Result {
    withExtendedLifetime(slab) { read(head, UnsafeRawPointer(head + 1)) }
  }

  /// The same content in another slab.
  func copied(to arena: RecordArena) -> RecordContent {
    with { head, bytes in
      let count = head.pointee.byteCount
      let slab = arena.slab(withRoomFor: Self.size(bytes: count))
      let copy = slab._withUnsafeGuaranteedRef { slab in
        slab.add(head.pointee) { $0.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: count)) }
      }
      return RecordContent(slab: slab.takeRetainedValue(), head: copy)
    }
  }
}

/// What is known about the bytes of a record. It holds on to nothing: what it refers to is kept by the slab.
struct RecordHead: Sendable {
  /// Who has judged the push.
  enum Standing: UInt8, Sendable {
    case judged
    case unjudged
    /// Somebody did, an export says.
    case toldJudged
    /// Nobody did, an export says.
    case toldUnjudged

    var isJudged: Bool { self == .judged || self == .toldJudged }
    var isTold: Bool { self == .toldJudged || self == .toldUnjudged }
  }

  // The sizes stand in front, where they are soonest reached: those of each record are read when it is evicted.
  fileprivate let origin: Unmanaged<ConnectionFacts>
  let receivedAt: Int64
  let arrivedAt: Int64
  /// How many bytes of body came in all.
  let bodySize: UInt32
  let stream: Int32
  let headerSize: UInt16
  let keptBodySize: UInt16
  let idSize: UInt8
  let standing: Standing
  /// How long the names of the findings are that an export tells, packed as header fields are.
  let toldSize: UInt16
  /// The verdict with the facts in it, at the same place for all; where nobody has judged, only the facts mean something.
  let verdict: KeptVerdict

  /// The connection it came on.
  var connection: ConnectionFacts { origin.takeUnretainedValue() }

  /// Calls `body` with each of the objects that the slab has to keep.
  @inline(__always)
  func forEachReferent(_ body: (Unmanaged<AnyObject>) -> Void) {
    body(.fromOpaque(origin.toOpaque()))
    verdict.forEachReferent(body)
  }

  /// How many bytes stand behind it.
  var byteCount: Int { Int(headerSize) + Int(keptBodySize) + Int(idSize) + Int(toldSize) }

  /// Where the body stands in them.
  var bodyRange: Range<Int> { Int(headerSize)..<Int(headerSize) + Int(keptBodySize) }

  /// Where the generated id stands in them.
  var idRange: Range<Int> { bodyRange.upperBound..<bodyRange.upperBound + Int(idSize) }

  /// Where the push's `apns-id` stands in them: the server's where it made one, else the client's. Nil if there is none.
  var idPlace: Range<Int>? { idSize > 0 ? idRange : place(verdict.facts.apnsID) }

  /// Where a part of the header fields stands in them; nil for nil.
  func place(_ range: ByteRange?) -> Range<Int>? {
    guard let range, range.indices.upperBound <= Int(headerSize) else { return nil }
    return range.indices
  }
}

extension RecordContent {
  /// Writes a record's content. What is longer than its size in the head is cut.
  ///
  /// - Parameter arena: where to.
  init(
    _ request: borrowing HTTPRequest, _ verdict: borrowing Verdict, isJudged: Bool,
    _ generatedID: borrowing ArraySlice<UInt8>, _ connection: borrowing ConnectionFacts, receivedAt: Int64,
    arrivedAt: Int64, toldFindings: HeaderList? = nil, in arena: borrowing RecordArena
  ) {
    let headerSize = UInt16(clamping: request.headers.bytes.count)
    let keptBodySize = UInt16(clamping: request.body.count)
    let idSize = UInt8(clamping: generatedID.count)
    let toldSize = toldFindings.map { UInt16(clamping: $0.bytes.count) } ?? 0
    let bodyEnd = Int(headerSize) + Int(keptBodySize)
    let idEnd = bodyEnd + Int(idSize)
    let standing: RecordHead.Standing =
      toldFindings == nil
      ? (isJudged ? .judged : .unjudged) : (isJudged ? .toldJudged : .toldUnjudged)
    let slab = arena.slab(withRoomFor: Self.size(bytes: idEnd + Int(toldSize)))
    head = slab._withUnsafeGuaranteedRef { slab in
      let head = RecordHead(
        origin: .passUnretained(connection), receivedAt: receivedAt, arrivedAt: arrivedAt,
        bodySize: UInt32(clamping: request.bodySize), stream: request.stream, headerSize: headerSize,
        keptBodySize: keptBodySize, idSize: idSize, standing: standing, toldSize: toldSize,
        verdict: KeptVerdict(verdict))
      return slab.add(head) { target in
        let headers = UnsafeMutableRawBufferPointer(rebasing: target[..<Int(headerSize)])
        request.headers.bytes.withUnsafeBytes { headers.fill(from: $0) }
        verdict.facts.blankSignatures(in: headers)
        let body = UnsafeMutableRawBufferPointer(rebasing: target[Int(headerSize)..<bodyEnd])
        request.body.withUnsafeBytes { body.fill(from: $0) }
        let id = UnsafeMutableRawBufferPointer(rebasing: target[bodyEnd..<idEnd])
        generatedID.withUnsafeBytes { id.fill(from: $0) }
        if let toldFindings {
          let told = UnsafeMutableRawBufferPointer(rebasing: target[idEnd...])
          toldFindings.bytes.withUnsafeBytes { told.fill(from: $0) }
        }
      }
    }
    self.slab = slab.takeRetainedValue()
  }
}

extension UnsafeMutableRawBufferPointer {
  fileprivate func fill(from source: UnsafeRawBufferPointer) {
    copyMemory(from: UnsafeRawBufferPointer(start: source.baseAddress, count: Swift.min(count, source.count)))
  }
}

internal import APNSRules
internal import Faults
internal import HTTPMessage

/// What never changes of a record, in one piece of memory: behind the head stand the injection, if there was one and
/// nothing else to tell of it, then the packed header fields, the body as far as it was kept, the generated id, and the
/// findings that an export tells, in this order and without gaps.
struct RecordContent {
  // Keeps the memory there that `head` points to.
  private let slab: RecordSlab
  /// To be read by way of `with`, which sees to it that it stays.
  let head: UnsafeMutablePointer<RecordHead>

  /// Of heads, and so of all that stands in a slab.
  static let alignment = MemoryLayout<RecordHead>.alignment

  /// What a head takes of a slab with so many bytes behind it, the injection's among them.
  static func size(bytes count: Int) -> Int {
    (MemoryLayout<RecordHead>.stride + count + alignment - 1) / alignment * alignment
  }

  /// Calls `read` with the head and the first byte of the header fields.
  @inline(__always)
  func with<Result>(_ read: (UnsafePointer<RecordHead>, UnsafeRawPointer) -> Result) -> Result {
    withExtendedLifetime(slab) { read(head, UnsafeRawPointer(head + 1) + head.pointee.injectionSize) }
  }

  /// The rule that fired, if there was nothing else to tell of it.
  var injection: Injection? {
    withExtendedLifetime(slab) { RecordHead.injection(behind: head)?.injection }
  }

  /// The same content in another slab.
  func copied(to arena: RecordArena) -> RecordContent {
    with { head, bytes in
      let slab = arena.slab(withRoomFor: Self.size(bytes: head.pointee.size))
      let copy = slab._withUnsafeGuaranteedRef { slab in
        slab.add(head.pointee, RecordHead.injection(behind: head)) {
          $0.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: head.pointee.byteCount))
        }
      }
      return RecordContent(slab: slab.takeRetainedValue(), head: copy)
    }
  }
}

/// What is known about the bytes of a record. It holds on to nothing: what it refers to is kept by the slab.
struct RecordHead: Sendable {
  /// What there is of a record.
  struct Marks: OptionSet, Sendable {
    let rawValue: UInt8
    /// A verdict.
    static let judged = Marks(rawValue: 1)
    /// Findings, for it comes from an export.
    static let told = Marks(rawValue: 2)
    /// An injection.
    static let injected = Marks(rawValue: 4)
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
  let marks: Marks
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

  /// How many bytes stand behind it, the injection's among them.
  var size: Int { injectionSize + byteCount }

  /// How many of them the injection takes.
  @inline(__always)
  var injectionSize: Int { marks.contains(.injected) ? MemoryLayout<KeptInjection>.stride : 0 }

  /// The injection behind a head, if there is one.
  static func injection(behind head: UnsafePointer<RecordHead>) -> KeptInjection? {
    guard head.pointee.marks.contains(.injected) else { return nil }
    return UnsafeRawPointer(head + 1).load(as: KeptInjection.self)
  }

  /// How many bytes the others are.
  var byteCount: Int { toldRange.upperBound }

  /// Where the body stands in them.
  var bodyRange: Range<Int> { Int(headerSize)..<Int(headerSize) + Int(keptBodySize) }

  /// Where the generated id stands in them.
  var idRange: Range<Int> { bodyRange.upperBound..<bodyRange.upperBound + Int(idSize) }

  /// Where the names of told findings stand in them.
  var toldRange: Range<Int> { idRange.upperBound..<idRange.upperBound + Int(toldSize) }

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
  /// - Parameters:
  ///   - injection: the one rule that fired, if there is nothing else to tell of it.
  ///   - arena: where to.
  init(
    _ request: borrowing HTTPRequest, _ verdict: borrowing Verdict, isJudged: Bool,
    _ generatedID: borrowing ArraySlice<UInt8>, _ connection: borrowing ConnectionFacts, receivedAt: Int64,
    arrivedAt: Int64, injection: borrowing Injection?, toldFindings: HeaderList? = nil, in arena: borrowing RecordArena
  ) {
    let headerSize = UInt16(clamping: request.headers.bytes.count)
    let keptBodySize = UInt16(clamping: request.body.count)
    let idSize = UInt8(clamping: generatedID.count)
    let toldSize = toldFindings.map { UInt16(clamping: $0.bytes.count) } ?? 0
    let bodyEnd = Int(headerSize) + Int(keptBodySize)
    let idEnd = bodyEnd + Int(idSize)
    let kept = injection.map { KeptInjection($0) }
    var marks: RecordHead.Marks = []
    if isJudged { marks.insert(.judged) }
    if toldFindings != nil { marks.insert(.told) }
    if kept != nil { marks.insert(.injected) }
    let size = idEnd + Int(toldSize) + (kept == nil ? 0 : MemoryLayout<KeptInjection>.stride)
    let slab = arena.slab(withRoomFor: Self.size(bytes: size))
    head = slab._withUnsafeGuaranteedRef { slab in
      let head = RecordHead(
        origin: .passUnretained(connection), receivedAt: receivedAt, arrivedAt: arrivedAt,
        bodySize: UInt32(clamping: request.bodySize), stream: request.stream, headerSize: headerSize,
        keptBodySize: keptBodySize, idSize: idSize, marks: marks, toldSize: toldSize,
        verdict: KeptVerdict(verdict))
      return slab.add(head, kept) { target in
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

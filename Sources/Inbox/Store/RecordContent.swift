internal import APNSMockNotation

internal import APNSMockRules
internal import APNSMockFaultModel
internal import APNSMockHTTPMessage

/// The immutable part of a record, in one block of memory without gaps: the head, the injection (if it is the only
/// detail beyond an ordinary response), the packed header fields, the kept part of the body, the generated
/// `apns-id`, and the findings of an imported record.
struct RecordContent {
  // Keeps alive the memory that `head` points to.
  private let slab: RecordSlab
  /// The head. Read it through `with`, which keeps the slab alive.
  let head: UnsafeMutablePointer<RecordHead>

  /// The alignment of heads, and so of each record in a slab.
  static let alignment = MemoryLayout<RecordHead>.alignment

  /// Returns the size in a slab of a head with `count` bytes behind it, including the injection.
  static func size(bytes count: Int) -> Int {
    (MemoryLayout<RecordHead>.stride + count + alignment - 1) / alignment * alignment
  }

  /// Calls `read` with the head and the first byte of the header fields.
  @inline(__always)
  func with<Result>(_ read: (UnsafePointer<RecordHead>, UnsafeRawPointer) -> Result) -> Result {
    withExtendedLifetime(slab) { read(head, UnsafeRawPointer(head + 1) + head.pointee.injectionSize) }
  }

  /// The injection, if it is the only detail beyond an ordinary response.
  var injection: Injection? {
    withExtendedLifetime(slab) { RecordHead.injection(behind: head)?.injection }
  }

  /// Returns a copy of the content in a slab of `arena`.
  func copied(to arena: RecordArena) -> RecordContent {
    with { head, bytes in
      let slab = arena.slab(withCapacityFor: Self.size(bytes: head.pointee.size))
      let copy = slab._withUnsafeGuaranteedRef { slab in
        slab.add(head.pointee, RecordHead.injection(behind: head)) {
          $0.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: head.pointee.byteCount))
        }
      }
      return RecordContent(slab: slab.takeRetainedValue(), head: copy)
    }
  }
}

/// The fixed-size part of a record's content. It retains nothing: the slab keeps the objects it refers to alive.
struct RecordHead: Sendable {
  /// The optional parts of a record.
  struct Marks: OptionSet, Sendable {
    let rawValue: UInt8
    /// The record has a verdict.
    static let hasVerdict = Marks(rawValue: 1)
    /// The record comes from an export and has findings.
    static let hasImportedFindings = Marks(rawValue: 2)
    /// The record has an injection.
    static let hasInjection = Marks(rawValue: 4)
    /// The request was not received completely.
    static let isIncomplete = Marks(rawValue: 8)
  }

  // The sizes are near the start of the head, because eviction reads those of each record.
  fileprivate let origin: Unmanaged<ConnectionFacts>
  let receivedAt: ServerTime
  let arrivedAt: MonotonicTime
  /// The size of the whole received body, in bytes.
  let bodySize: UInt32
  let stream: Int32
  let headerSize: UInt16
  let keptBodySize: UInt16
  let idSize: UInt8
  let marks: Marks
  /// The size in bytes of the names of imported findings, packed like header fields.
  let importedFindingsSize: UInt16
  /// The verdict with its facts, at the same offset in all records; for an incomplete request only the facts are
  /// valid.
  let verdict: PackedVerdict

  /// The connection of the request.
  var connection: ConnectionFacts { origin.takeUnretainedValue() }

  /// Calls `body` with each object that the slab has to retain.
  @inline(__always)
  func forEachReferent(_ body: (Unmanaged<AnyObject>) -> Void) {
    body(.fromOpaque(origin.toOpaque()))
    verdict.forEachReferent(body)
  }

  /// The number of bytes behind the head, including the injection.
  var size: Int { injectionSize + byteCount }

  /// The size of the injection in bytes; 0 without one.
  @inline(__always)
  var injectionSize: Int { marks.contains(.hasInjection) ? MemoryLayout<PackedInjection>.stride : 0 }

  /// Returns the injection behind a head, if there is one.
  static func injection(behind head: UnsafePointer<RecordHead>) -> PackedInjection? {
    guard head.pointee.marks.contains(.hasInjection) else { return nil }
    return UnsafeRawPointer(head + 1).load(as: PackedInjection.self)
  }

  /// The number of bytes behind the head, without the injection. The ranges below are within these bytes.
  var byteCount: Int { importedFindingsRange.upperBound }

  /// The range of the body.
  var bodyRange: Range<Int> { Int(headerSize)..<Int(headerSize) + Int(keptBodySize) }

  /// The range of the generated `apns-id`.
  var idRange: Range<Int> { bodyRange.upperBound..<bodyRange.upperBound + Int(idSize) }

  /// The range of the names of imported findings.
  var importedFindingsRange: Range<Int> { idRange.upperBound..<idRange.upperBound + Int(importedFindingsSize) }

  /// The range of the push's `apns-id`: the generated one if there is one, else the client's. Nil without an ID.
  var effectiveIDRange: Range<Int>? { idSize > 0 ? idRange : byteRange(verdict.facts.apnsID) }

  /// Returns the range of a part of the header fields; nil for nil.
  func byteRange(_ range: ByteRange?) -> Range<Int>? {
    guard let range, range.indices.upperBound <= Int(headerSize) else { return nil }
    return range.indices
  }
}

extension RecordContent {
  /// Writes a record's content. Parts that are too long for their size field in the head are cut.
  ///
  /// - Parameters:
  ///   - injection: The injection, if it is the only detail beyond an ordinary response.
  ///   - arena: The arena to write to.
  init(
    _ request: borrowing HTTPRequest, _ verdict: borrowing Verdict, hasVerdict: Bool, isComplete: Bool,
    _ generatedID: borrowing ArraySlice<UInt8>, _ connection: borrowing ConnectionFacts, receivedAt: ServerTime,
    arrivedAt: MonotonicTime, injection: borrowing Injection?, importedFindings: HeaderList? = nil,
    in arena: borrowing RecordArena
  ) {
    let headerSize = UInt16(clamping: request.headers.bytes.count)
    let keptBodySize = UInt16(clamping: request.body.count)
    let idSize = UInt8(clamping: generatedID.count)
    let importedFindingsSize = importedFindings.map { UInt16(clamping: $0.bytes.count) } ?? 0
    let bodyEnd = Int(headerSize) + Int(keptBodySize)
    let idEnd = bodyEnd + Int(idSize)
    let kept = injection.map { PackedInjection($0) }
    var marks: RecordHead.Marks = []
    if hasVerdict { marks.insert(.hasVerdict) }
    if importedFindings != nil { marks.insert(.hasImportedFindings) }
    if kept != nil { marks.insert(.hasInjection) }
    if !isComplete { marks.insert(.isIncomplete) }
    let size = idEnd + Int(importedFindingsSize) + (kept == nil ? 0 : MemoryLayout<PackedInjection>.stride)
    let slab = arena.slab(withCapacityFor: Self.size(bytes: size))
    head = slab._withUnsafeGuaranteedRef { slab in
      let head = RecordHead(
        origin: .passUnretained(connection), receivedAt: receivedAt, arrivedAt: arrivedAt,
        bodySize: UInt32(clamping: request.bodySize), stream: request.stream, headerSize: headerSize,
        keptBodySize: keptBodySize, idSize: idSize, marks: marks, importedFindingsSize: importedFindingsSize,
        verdict: PackedVerdict(verdict))
      return slab.add(head, kept) { target in
        let headers = UnsafeMutableRawBufferPointer(rebasing: target[..<Int(headerSize)])
        request.headers.bytes.withUnsafeBytes { headers.fill(from: $0) }
        verdict.facts.blankSignatures(in: headers)
        let body = UnsafeMutableRawBufferPointer(rebasing: target[Int(headerSize)..<bodyEnd])
        request.body.withUnsafeBytes { body.fill(from: $0) }
        let id = UnsafeMutableRawBufferPointer(rebasing: target[bodyEnd..<idEnd])
        generatedID.withUnsafeBytes { id.fill(from: $0) }
        if let importedFindings {
          let findingsTarget = UnsafeMutableRawBufferPointer(rebasing: target[idEnd...])
          importedFindings.bytes.withUnsafeBytes { findingsTarget.fill(from: $0) }
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

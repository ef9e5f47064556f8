/// The header fields of one message in the order they came, packed into one buffer.
///
/// A push costs no allocation per field: each field is `name length (2 bytes, little endian), value length (2 bytes),
/// name, value`, one after the other. The same bytes are what the inbox keeps. Everything that remembers a value does so
/// as a `ByteRange` into `bytes`.
public struct HeaderList: Sendable, Equatable {
  /// The packed fields.
  public private(set) var bytes: [UInt8] = []

  /// How many fields there are.
  public private(set) var count = 0

  /// The size HTTP/2 counts against SETTINGS_MAX_HEADER_LIST_SIZE: for each field its name, its value and 32
  /// (RFC 9113 section 6.5.2).
  @inlinable public var listSize: Int { bytes.count &+ count &* 28 }

  /// No fields.
  public init() {}

  /// Fields from text, for tests and clients. Names are expected in lower case, as HTTP/2 wants them.
  public init(_ fields: [(String, String)]) {
    for (name, value) in fields { append(name: name, value: value) }
  }

  /// Adds one field.
  ///
  /// - Returns: `false`, with nothing added, if the name, the value or the whole list would not fit into 16-bit offsets.
  @discardableResult
  public mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    let size = Self.size(name: name.count, value: value.count)
    guard bytes.count &+ size <= Int(UInt16.max) else { return false }
    // Written in place: one append is a third of the cost of three.
    bytes.append(addingCapacity: size) { room in
      room.withUnsafeMutableBufferPointer { room, filled in
        guard let start = room.baseAddress else { return }
        Self.pack(name: name, value: value, to: UnsafeMutableRawPointer(start))
        filled = size
      }
    }
    count += 1
    return true
  }

  /// Adds fields that `pack` has put one behind the other.
  ///
  /// - Returns: `false`, with nothing added, if the whole list would not fit into 16-bit offsets.
  @discardableResult
  public mutating func append(packed fields: UnsafeRawBufferPointer, count added: Int) -> Bool {
    guard bytes.count &+ fields.count <= Int(UInt16.max) else { return false }
    bytes.append(contentsOf: fields)
    count += added
    return true
  }

  /// How many bytes a field takes when it is packed.
  ///
  /// - Parameters:
  ///   - name: the length of its name in bytes.
  ///   - value: the length of its value in bytes.
  @inlinable
  public static func size(name: Int, value: Int) -> Int { 4 &+ name &+ value }

  /// Writes one field as it stands in `bytes`.
  ///
  /// - Parameters:
  ///   - name: at most 65 535 bytes, as `value`.
  ///   - target: where there is room for `size(name:value:)` bytes.
  @inlinable @inline(__always)
  public static func pack(
    name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) {
    let lengths = UInt32(truncatingIfNeeded: name.count | value.count &<< 16).littleEndian
    target.storeBytes(of: lengths, as: UInt32.self)
    (target + 4).copyText(name)
    (target + (4 &+ name.count)).copyText(value)
  }

  /// Adds one field given as text.
  @discardableResult
  public mutating func append(name: String, value: String) -> Bool {
    var name = name
    var value = value
    return name.withUTF8 { name in
      value.withUTF8 { append(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Lets `body` write over the bytes of a value, which is how a prepared answer gets its ids.
  public mutating func withMutableValue(_ range: ByteRange, _ body: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    guard range.indices.upperBound <= bytes.count else { return }
    bytes.withUnsafeMutableBufferPointer { body(UnsafeMutableBufferPointer(rebasing: $0[range.indices])) }
  }

  /// Empties the list and keeps its buffer for the next message.
  public mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }

  /// Calls `body` with the position of each field's name and value, in order.
  public func forEachField(_ body: (_ name: ByteRange, _ value: ByteRange) -> Void) {
    bytes.withUnsafeBytes { Self.forEachField(in: $0, body) }
  }

  /// The same over packed bytes that stand elsewhere, such as in a record of the inbox.
  @inlinable
  public static func forEachField(
    in packed: UnsafeRawBufferPointer, _ body: (_ name: ByteRange, _ value: ByteRange) -> Void
  ) {
    var offset = 0
    while let field = field(in: packed, at: offset) {
      body(field.name, field.value)
      offset = field.value.indices.upperBound
    }
  }

  /// The field that begins at `offset` of packed bytes, which ends where its value does; nil behind the last one.
  @inlinable
  public static func field(
    in packed: UnsafeRawBufferPointer, at offset: Int
  ) -> (name: ByteRange, value: ByteRange)? {
    guard offset + 4 <= packed.count else { return nil }
    let lengths = UInt32(littleEndian: packed.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    let nameCount = Int(lengths & 0xffff)
    let valueCount = Int(lengths >> 16)
    let name = offset + 4
    guard name + nameCount + valueCount <= packed.count else { return nil }
    return (ByteRange(offset: name, count: nameCount), ByteRange(offset: name + nameCount, count: valueCount))
  }

  /// The first value under `name`, as text; for clients and tests.
  public subscript(name: String) -> String? {
    var found: String?
    forEachField { field, value in
      if found == nil, self.string(field) == name { found = self.string(value) }
    }
    return found
  }

  /// The text at `range`, with bytes that are not UTF-8 replaced.
  public func string(_ range: ByteRange) -> String {
    String(decoding: bytes[range.indices], as: UTF8.self)
  }
}

/// A stretch of a packed header list, in bytes from its beginning. Four bytes wide, because each record keeps several.
public struct ByteRange: Sendable, Equatable, Hashable {
  /// Where it begins.
  public var offset: UInt16
  /// How long it is.
  public var count: UInt16

  /// A stretch of `count` bytes from `offset`; both must fit into 16 bits, which `HeaderList.append` sees to.
  @inlinable
  public init(offset: Int, count: Int) {
    self.offset = UInt16(truncatingIfNeeded: offset)
    self.count = UInt16(truncatingIfNeeded: count)
  }

  /// The same as indices.
  @inlinable public var indices: Range<Int> { Int(offset)..<Int(offset) + Int(count) }

  /// Whether there is nothing in it.
  public var isEmpty: Bool { count == 0 }
}

extension UnsafeMutableRawPointer {
  /// Copies the bytes of a name or a value. Nearly all have 4 to 32 of them: two words that may overlap, without a call.
  @inlinable @inline(__always)
  func copyText(_ text: UnsafeRawBufferPointer) {
    guard let source = text.baseAddress else { return }
    switch text.count {
    case 16...32: copyEnds(of: source, text.count, as: SIMD16<UInt8>.self)
    case 8..<16: copyEnds(of: source, text.count, as: UInt64.self)
    case 4..<8: copyEnds(of: source, text.count, as: UInt32.self)
    default: copyMemory(from: source, byteCount: text.count)
    }
  }

  /// - Parameter count: at least one word, at most two.
  @inlinable @inline(__always)
  func copyEnds<Word: BitwiseCopyable>(of source: UnsafeRawPointer, _ count: Int, as _: Word.Type) {
    let last = count &- MemoryLayout<Word>.size
    storeBytes(of: source.loadUnaligned(as: Word.self), as: Word.self)
    storeBytes(of: source.loadUnaligned(fromByteOffset: last, as: Word.self), toByteOffset: last, as: Word.self)
  }
}

/// The header fields of one message in order, packed into one buffer.
///
/// Fields are stored consecutively, without an allocation per field: `name length (2 bytes, little endian), value
/// length (2 bytes), name, value`. The inbox stores the same bytes. References to a value are stored as a
/// `ByteRange` into `bytes`.
///
/// `@usableFromInline`, here and at other package types, lets the compiler inline members into other modules. Measured:
/// 5 % of the instructions per push (`Benchmarks/instructions.py`, workload `400`).
@usableFromInline
package struct HeaderList: Sendable, Equatable {
  /// The packed fields.
  @usableFromInline package private(set) var bytes: [UInt8] = []

  /// The number of fields.
  @usableFromInline package private(set) var count = 0

  /// The size that counts toward SETTINGS_MAX_HEADER_LIST_SIZE: for each field, the length of its name and value
  /// plus 32 (RFC 9113, section 6.5.2).
  @inlinable package var listSize: Int { bytes.count &+ count &* 28 }

  /// Creates an empty list.
  package init() {}

  /// Creates an empty list that grows to this number of packed bytes without another allocation.
  package init(capacity: Int) { bytes.reserveCapacity(capacity) }

  /// Creates a list from text, for tests and clients. Names must be in lower case, as HTTP/2 requires.
  package init(_ fields: [(String, String)]) {
    for (name, value) in fields { append(name: name, value: value) }
  }

  /// Appends a field.
  ///
  /// - Returns: `false`, with nothing appended, if the name, the value or the whole list would not fit into 16-bit
  ///   offsets.
  @discardableResult
  package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    let size = Self.size(name: name.count, value: value.count)
    guard bytes.count &+ size <= Int(UInt16.max) else { return false }
    // Written in place. Measured: one append takes a third of the time of three.
    bytes.append(addingCapacity: size) { output in
      output.withUnsafeMutableBufferPointer { buffer, filled in
        guard let start = buffer.baseAddress else { return }
        Self.pack(name: name, value: value, to: UnsafeMutableRawPointer(start))
        filled = size
      }
    }
    count += 1
    return true
  }

  /// Appends fields that `pack` has written consecutively.
  ///
  /// - Returns: `false`, with nothing appended, if the whole list would not fit into 16-bit offsets.
  @discardableResult
  package mutating func append(packed fields: UnsafeRawBufferPointer, count added: Int) -> Bool {
    guard bytes.count &+ fields.count <= Int(UInt16.max) else { return false }
    bytes.append(contentsOf: fields)
    count += added
    return true
  }

  /// Returns the size of a packed field in bytes.
  ///
  /// - Parameters:
  ///   - name: The length of its name in bytes.
  ///   - value: The length of its value in bytes.
  @inlinable
  package static func size(name: Int, value: Int) -> Int { 4 &+ name &+ value }

  /// Writes one field in the format of `bytes`.
  ///
  /// - Parameters:
  ///   - name: At most 65 535 bytes.
  ///   - value: At most 65 535 bytes.
  ///   - target: Memory for at least `size(name:value:)` bytes.
  @inlinable @inline(__always)
  package static func pack(
    name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer
  ) {
    let lengths = UInt32(truncatingIfNeeded: name.count | value.count &<< 16).littleEndian
    target.storeBytes(of: lengths, as: UInt32.self)
    (target + 4).copyShortBytes(name)
    (target + (4 &+ name.count)).copyShortBytes(value)
  }

  /// Appends a field given as text.
  @discardableResult
  package mutating func append(name: String, value: String) -> Bool {
    var name = name
    var value = value
    return name.withUTF8 { name in
      value.withUTF8 { append(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Calls `body` with the mutable bytes of a value, for example to write the IDs into a prepared response.
  package mutating func withMutableValue(_ range: ByteRange, _ body: (UnsafeMutableBufferPointer<UInt8>) -> Void) {
    guard range.indices.upperBound <= bytes.count else { return }
    bytes.withUnsafeMutableBufferPointer { body(UnsafeMutableBufferPointer(rebasing: $0[range.indices])) }
  }

  /// Removes all fields, keeping the buffer.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }

  /// Calls `body` with the ranges of each field's name and value, in order.
  package func forEachField(_ body: (_ name: ByteRange, _ value: ByteRange) -> Void) {
    bytes.withUnsafeBytes { Self.forEachField(in: $0, body) }
  }

  /// Calls `body` with the ranges of each field's name and value in packed bytes, such as those of an inbox record.
  @inlinable
  package static func forEachField(
    in packed: UnsafeRawBufferPointer, _ body: (_ name: ByteRange, _ value: ByteRange) -> Void
  ) {
    var offset = 0
    while let field = field(in: packed, at: offset) {
      body(field.name, field.value)
      offset = field.value.indices.upperBound
    }
  }

  /// Returns the field at `offset` of packed bytes, or nil at the end. The next field begins where this value ends.
  @inlinable
  package static func field(
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

  /// The first value with the given name, as text; for clients and tests.
  package subscript(name: String) -> String? {
    bytes.withUnsafeBytes { packed in
      var offset = 0
      while let field = Self.field(in: packed, at: offset) {
        if packed[field.name.indices].elementsEqual(name.utf8) { return string(field.value) }
        offset = field.value.indices.upperBound
      }
      return nil
    }
  }

  /// Returns the text at `range`, with invalid UTF-8 replaced.
  package func string(_ range: ByteRange) -> String {
    String(decoding: bytes[range.indices], as: UTF8.self)
  }
}

/// A byte range in a packed header list. Four bytes in size, because each record stores several.
@usableFromInline
package struct ByteRange: Sendable, Equatable, Hashable {
  /// The offset of the first byte.
  @usableFromInline package var offset: UInt16
  /// The number of bytes.
  @usableFromInline package var count: UInt16

  /// Creates a range of `count` bytes from `offset`. Both must fit into 16 bits, which `HeaderList.append` ensures.
  @inlinable
  package init(offset: Int, count: Int) {
    self.offset = UInt16(truncatingIfNeeded: offset)
    self.count = UInt16(truncatingIfNeeded: count)
  }

  /// The range as indices into `HeaderList.bytes`.
  @inlinable package var indices: Range<Int> { Int(offset)..<Int(offset) + Int(count) }

  /// Whether the range is empty.
  @inlinable package var isEmpty: Bool { count == 0 }
}

extension UnsafeRawBufferPointer {
  /// The bytes at a range of a packed header list, which must be within bounds.
  @inlinable @inline(__always)
  package subscript(range: ByteRange) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[range.indices])
  }
}

extension UnsafeMutableRawPointer {
  /// Copies the bytes of a name or a value. Most have 4 to 32 bytes, which are copied as two possibly overlapping
  /// words without a call.
  @inlinable @inline(__always)
  func copyShortBytes(_ text: UnsafeRawBufferPointer) {
    guard let source = text.baseAddress else { return }
    switch text.count {
    case 16...32: copyEnds(of: source, text.count, as: SIMD16<UInt8>.self)
    case 8..<16: copyEnds(of: source, text.count, as: UInt64.self)
    case 4..<8: copyEnds(of: source, text.count, as: UInt32.self)
    default: copyMemory(from: source, byteCount: text.count)
    }
  }

  /// Copies `count` bytes as two possibly overlapping words.
  ///
  /// - Parameter count: At least the size of one word, at most that of two.
  @inlinable @inline(__always)
  func copyEnds<Word: BitwiseCopyable>(of source: UnsafeRawPointer, _ count: Int, as _: Word.Type) {
    let last = count &- MemoryLayout<Word>.size
    storeBytes(of: source.loadUnaligned(as: Word.self), as: Word.self)
    storeBytes(of: source.loadUnaligned(fromByteOffset: last, as: Word.self), toByteOffset: last, as: Word.self)
  }
}

private import CAPNSMockNghttp2
private import APNSMockHTTPMessage

/// Rewrites HEADERS frames so that their Huffman-coded strings become plain literals.
///
/// nghttp2 decodes Huffman code four bits at a time. Measured when this was added: its decoding took 20 % of the CPU
/// time per push: for the path, which differs in each request, and for the provider token, which curl and other clients
/// built on nghttp2 send with each request. A header block means the same whether its strings are Huffman-coded or not,
/// and produces the same dynamic table (RFC 7541 sections 4.1 and 5.2). nghttp2 still parses and validates each block.
///
/// Unusual frames are passed on unchanged: padded frames, blocks of several frames, and blocks that are invalid or
/// would become too large.
///
/// The sessions of one event loop share an instance. Not Sendable: it is confined to that thread.
final class HuffmanExpander {
  private static let maxFrame = IgnoredFrameScanner.headerSize + Int(HTTP2Limits.maxFrameSize)
  /// The coded sizes of strings that are cached: provider tokens, but not paths, which have 55 bytes.
  private static let cachedSizes = 100...1000

  /// A coded string, and its plain literal including the length prefix.
  private struct CachedString {
    var coded: [UInt8] = []
    var literal: [UInt8] = []
  }

  private let code = HuffmanCode.hpack
  /// The buffer for the rewritten frame. It has capacity for a frame of maximum size plus a copy of another one and
  /// a string.
  private let output = UnsafeMutableRawPointer.allocate(
    byteCount: 2 * maxFrame + HuffmanCode.capacity(for: maxFrame) + 3, alignment: 16)
  /// The cache of long strings, indexed by three bits that are random in a signature.
  private var cache = [CachedString](repeating: CachedString(), count: 8)

  deinit { output.deallocate() }

  /// Rewrites a frame.
  ///
  /// - Parameter frame: A whole HEADERS frame including its frame header.
  /// - Returns: The replacement, valid until the next call; nil if the frame is to be passed on unchanged.
  func expand(_ frame: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    let flags = frame[4]
    guard frame.count <= Self.maxFrame, flags & (APNS_FLAG_END_HEADERS | APNS_FLAG_PADDED) == APNS_FLAG_END_HEADERS
    else { return nil }
    var block = HeaderBlock(
      bytes: frame, offset: IgnoredFrameScanner.headerSize + (flags & APNS_FLAG_PRIORITY == 0 ? 0 : 5))
    var copied = 0
    var written = 0
    while block.offset < frame.count {
      guard let strings = block.skipNumber() else { return nil }
      for _ in 0..<strings {
        let start = block.offset
        guard let string = block.string() else { return nil }
        guard string.isCoded else { continue }
        written = copy(frame, copied..<start, to: written)
        guard let end = write(string.bytes, at: written), end <= Self.maxFrame else { return nil }
        written = end
        copied = block.offset
      }
    }
    if copied == 0 { return nil }
    written = copy(frame, copied..<frame.count, to: written)
    guard written <= Self.maxFrame else { return nil }
    let length = written - IgnoredFrameScanner.headerSize
    for index in 0..<3 {
      output.storeBytes(of: UInt8(truncatingIfNeeded: length >> (16 - 8 * index)), toByteOffset: index, as: UInt8.self)
    }
    return UnsafeRawBufferPointer(start: output, count: written)
  }

  /// - Returns: The end of the copied bytes.
  private func copy(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>, to offset: Int) -> Int {
    if let start = bytes.baseAddress {
      (output + offset).copyMemory(from: start + range.lowerBound, byteCount: range.count)
    }
    return offset + range.count
  }

  /// Writes a string as a plain literal.
  ///
  /// - Returns: The end of the string; nil if it is invalid.
  private func write(_ coded: UnsafeRawBufferPointer, at offset: Int) -> Int? {
    guard Self.cachedSizes.contains(coded.count) else { return decode(coded, at: offset) }
    // The second to last byte, because the last one is padded with ones.
    let slot = Int(coded[coded.count - 2] & 7)
    if cache[slot].coded.withUnsafeBytes({ $0.equals(coded) }) {
      return cache[slot].literal.withUnsafeBytes { copy($0, 0..<$0.count, to: offset) }
    }
    guard let end = decode(coded, at: offset) else { return nil }
    let literal = UnsafeRawBufferPointer(start: output + offset, count: end - offset)
    cache[slot] = CachedString(coded: Array(coded), literal: Array(literal))
    return end
  }

  private func decode(_ coded: UnsafeRawBufferPointer, at offset: Int) -> Int? {
    let start = output + offset
    // The size of the length prefix depends on the decoded length. This estimate is mostly right.
    let likely = HuffmanCode.capacity(for: coded.count) < 127 ? 1 : 2
    guard let count = code.decode(coded, to: start + likely), count <= Int(HTTP2Limits.maxFrameSize) else { return nil }
    let lengthSize = count < 127 ? 1 : count < 127 + 128 ? 2 : 3
    if lengthSize != likely { (start + lengthSize).copyMemory(from: start + likely, byteCount: count) }
    // A prefix of seven bits; if all are set, the rest follows in groups of seven bits, with the eighth bit set in
    // all but the last (section 5.1).
    start.storeBytes(of: UInt8(min(count, 127)), as: UInt8.self)
    let rest = max(0, count - 127)
    if lengthSize > 1 {
      let mark: UInt8 = lengthSize == 3 ? 0x80 : 0
      start.storeBytes(of: UInt8(rest & 0x7f) | mark, toByteOffset: 1, as: UInt8.self)
    }
    if lengthSize == 3 { start.storeBytes(of: UInt8(rest >> 7), toByteOffset: 2, as: UInt8.self) }
    return offset + lengthSize + count
  }
}

/// Parses the structure of a header block (RFC 7541 section 6) without interpreting it.
private struct HeaderBlock {
  let bytes: UnsafeRawBufferPointer
  /// The position of the next unread byte.
  var offset: Int

  /// Skips the integer that begins a field representation or a table size update.
  ///
  /// - Returns: The number of strings that follow; nil if the integer is truncated.
  mutating func skipNumber() -> Int? {
    let first = bytes[offset]
    offset += 1
    // An indexed field or a table size update.
    if first & 0x80 != 0 { return skipRest(of: first, 0x7f) ? 0 : nil }
    if first & 0xe0 == 0x20 { return skipRest(of: first, 0x1f) ? 0 : nil }
    let mask: UInt8 = first & 0x40 != 0 ? 0x3f : 0x0f
    guard skipRest(of: first, mask) else { return nil }
    // Without an index, the name precedes the value.
    return first & mask == 0 ? 2 : 1
  }

  private mutating func skipRest(of first: UInt8, _ mask: UInt8) -> Bool {
    guard first & mask == mask else { return true }
    while offset < bytes.count {
      offset += 1
      if bytes[offset - 1] & 0x80 == 0 { return true }
    }
    return false
  }

  /// Reads a string.
  ///
  /// - Returns: nil if the string extends beyond the end of the block.
  mutating func string() -> (bytes: UnsafeRawBufferPointer, isCoded: Bool)? {
    guard offset < bytes.count else { return nil }
    let first = bytes[offset]
    offset += 1
    var length = Int(first & 0x7f)
    if length == 0x7f {
      var shift = 0
      var isLast = false
      while !isLast {
        // A longer string does not fit into a frame.
        guard offset < bytes.count, shift <= 14 else { return nil }
        length += Int(bytes[offset] & 0x7f) << shift
        isLast = bytes[offset] & 0x80 == 0
        shift += 7
        offset += 1
      }
    }
    guard length <= bytes.count - offset else { return nil }
    defer { offset += length }
    return (UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + length]), first & 0x80 != 0)
  }
}

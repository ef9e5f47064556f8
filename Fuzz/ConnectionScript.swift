import APNSMockFaultModel
import APNSMockFaults
import MockAPNS
import NIOCore

/// Executes a script with the actions of a provider, one command per line. In arguments, `\0a` is the byte 10.
///
/// ```
/// header apns-priority=5    adds a field to the following pushes; header apns-priority removes it
/// push {"aps":{}}           sends a push; `open` sends it without its end, `more` adds a last DATA frame to it
/// frame 08000000000000ffff  sends a frame: type, flags, stream and payload in hexadecimal, without the length
/// raw text                  sends bytes; shout text sends them without TLS
/// send                      flushes the bytes so far; so do the following four commands
/// wait 10000                advances the time by so many milliseconds
/// use flaky-503             activates another profile
/// rule {do: {hang: 1s}}     adds a rule
/// order reset               a connection command of the admin API: goodbye, close, reset
/// ```
struct ConnectionScript {
  private let provider: FuzzProvider
  private var fields: [(name: [UInt8], value: [UInt8])]
  private var stream: UInt32 = 0
  private var unsent = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
  /// The number of pushes an input may still send: creating records is the slowest part.
  private var pushesLeft = 64

  init(_ provider: FuzzProvider) throws {
    self.provider = provider
    let token = try provider.server.token(issuedAt: provider.state.clock.now / 1000)
    let fields = [
      (":method", "POST"), (":scheme", "https"), (":path", "/3/device/" + String(repeating: "ab12", count: 16)),
      (":authority", "localhost"), ("authorization", "bearer \(token)"), ("apns-topic", "com.example.app"),
      ("apns-push-type", "alert"),
    ]
    self.fields = fields.map { (Array($0.utf8), Array($1.utf8)) }
  }

  mutating func follow(_ input: inout Input) throws {
    var line = Input(input.line())
    let command = line.text(before: UInt8(ascii: " "))
    let text = Self.unescaped(line.remaining)
    switch command {
    case "header": change(text)
    case "push": push(text, endsIt: true)
    case "open": push(text, endsIt: false)
    case "more": unsent += Self.frame(type: 0, flags: 1, stream: stream, text)
    case "frame":
      let bytes = Self.bytes(hexadecimal: text)
      guard bytes.count >= 6 else { return }
      let number = bytes[2..<6].reduce(0) { $0 << 8 | UInt32($1) }
      unsent += Self.frame(type: bytes[0], flags: bytes[1], stream: number, Array(bytes[6...]))
    case "raw": unsent += text
    case "shout": try provider.shout(text)
    case "send": try send()
    case "wait":
      try send()
      let milliseconds = Int64(String(decoding: text, as: UTF8.self)) ?? 1000
      // Time limits are checked every ten seconds.
      try provider.wait(.milliseconds(min(max(milliseconds, 0), 600_000)))
    case "use":
      try send()
      if let profile = provider.server.profile(String(decoding: text, as: UTF8.self)) {
        provider.state.faults.use(profile)
      }
    case "rule":
      try send()
      let name = "rule-\(provider.state.faults.selection.added.count)"
      if let definition = try? AddedRuleDefinition.parse(String(decoding: text, as: UTF8.self), defaultName: name),
        definition.ttl == nil
      {
        provider.state.faults.add(definition.rule, timeToLive: nil)
      }
    case "order":
      try send()
      try order(String(decoding: text, as: UTF8.self))
    default: break
    }
    if input.isAtEnd { try send() }
  }

  private mutating func send() throws {
    try provider.write(unsent)
    unsent = []
  }

  private func order(_ word: String) throws {
    switch word {
    case "close": try provider.fire(ConnectionAction.close)
    case "reset": try provider.fire(ConnectionAction.reset)
    default: try provider.sendClosingGoAway()
    }
  }

  private mutating func change(_ text: [UInt8]) {
    let name = Array(text.prefix { $0 != UInt8(ascii: "=") })
    // Kept at its position, because pseudo-header fields must come first.
    let index = fields.firstIndex { $0.name == name }
    fields.removeAll { $0.name == name }
    guard name.count < text.count else { return }
    fields.insert((name, Array(text[(name.count + 1)...])), at: index ?? fields.endIndex)
  }

  private mutating func push(_ body: [UInt8], endsIt: Bool) {
    guard pushesLeft > 0 else { return }
    pushesLeft -= 1
    stream = stream == 0 ? 1 : stream &+ 2
    let block = fields.reduce(into: [UInt8]()) { $0 += [0] + Self.text($1.name) + Self.text($1.value) }
    let end: UInt8 = endsIt ? 1 : 0
    // A header block larger than a frame continues in CONTINUATION frames.
    let parts = Self.pieces(of: block)
    for (index, part) in parts.enumerated() {
      let flags: UInt8 = (index == parts.count - 1 ? 4 : 0) | (index == 0 && body.isEmpty ? end : 0)
      unsent += Self.frame(type: index == 0 ? 1 : 9, flags: flags, stream: stream, part)
    }
    guard !body.isEmpty else { return }
    let bodyParts = Self.pieces(of: body)
    for (index, part) in bodyParts.enumerated() {
      unsent += Self.frame(type: 0, flags: index == bodyParts.count - 1 ? end : 0, stream: stream, part)
    }
  }

  private static func pieces(of bytes: [UInt8]) -> [[UInt8]] {
    stride(from: 0, to: max(bytes.count, 1), by: 16_384).map { Array(bytes[$0..<min($0 + 16_384, bytes.count)]) }
  }

  /// Encodes an HPACK string literal without Huffman code (RFC 7541 section 5.2).
  private static func text(_ text: [UInt8]) -> [UInt8] {
    guard text.count >= 127 else { return [UInt8(text.count)] + text }
    var length: [UInt8] = [127]
    var rest = text.count - 127
    while rest >= 128 {
      length.append(UInt8(rest % 128 + 128))
      rest /= 128
    }
    return length + [UInt8(rest)] + text
  }

  private static func frame(type: UInt8, flags: UInt8, stream: UInt32, _ content: [UInt8]) -> [UInt8] {
    let count = UInt32(content.count)
    let head = [count >> 16, count >> 8, count, UInt32(type), UInt32(flags)] + [24, 16, 8, 0].map { stream >> $0 }
    return head.map { UInt8(truncatingIfNeeded: $0) } + content
  }

  private static func unescaped(_ text: UnsafeRawBufferPointer) -> [UInt8] {
    var bytes: [UInt8] = []
    var position = 0
    while position < text.count {
      if text[position] == UInt8(ascii: "\\"), position + 2 < text.count,
        let byte = Self.bytes(hexadecimal: Array(text[position + 1...position + 2])).first
      {
        bytes.append(byte)
        position += 3
      } else {
        bytes.append(text[position])
        position += 1
      }
    }
    return bytes
  }

  /// Decodes the leading pairs of hexadecimal digits.
  private static func bytes(hexadecimal text: [UInt8]) -> [UInt8] {
    let digits = text.prefix { Character(Unicode.Scalar($0)).isHexDigit }
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap { index in
      UInt8(String(decoding: digits[index...index + 1], as: UTF8.self), radix: 16)
    }
  }
}

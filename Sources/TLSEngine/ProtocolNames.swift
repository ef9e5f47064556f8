/// The names in an ALPN offer (RFC 7301 section 3.1), each preceded by its length in one byte. Ends at the first
/// truncated name.
struct ProtocolNames: Sequence, IteratorProtocol {
  private var rest: Slice<UnsafeBufferPointer<UInt8>>

  init(_ offer: Slice<UnsafeBufferPointer<UInt8>>) { rest = offer }

  mutating func next() -> Slice<UnsafeBufferPointer<UInt8>>? {
    guard let length = rest.first, rest.count > Int(length) else { return nil }
    let name = rest.dropFirst().prefix(Int(length))
    rest = rest.dropFirst(Int(length) + 1)
    return name
  }
}

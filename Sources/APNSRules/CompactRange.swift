public import HTTPMessage

/// An optional range of a header list, stored in four bytes; an `Optional<ByteRange>` takes six.
@propertyWrapper
public struct CompactRange: Sendable, Equatable {
  /// The offset in the lower half, the count in the upper half. All ones mean nil: a header list with that range
  /// would be twice as long as the maximum.
  private var bits = UInt32.max

  /// Creates an empty value.
  public init() {}

  /// The range, or nil.
  public var wrappedValue: ByteRange? {
    get { bits == .max ? nil : ByteRange(offset: Int(bits & 0xFFFF), count: Int(bits >> 16)) }
    set { bits = newValue.map { UInt32($0.offset) | UInt32($0.count) << 16 } ?? .max }
  }
}

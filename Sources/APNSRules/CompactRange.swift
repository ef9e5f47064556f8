public import HTTPMessage

/// A stretch of a header list, or none, in four bytes, where an optional takes six.
@propertyWrapper
public struct CompactRange: Sendable, Equatable {
  /// The offset in the lower half. A header list that had room for these bits as a stretch would be twice as long as one
  /// can be.
  private var bits = UInt32.max

  /// None.
  public init() {}

  /// The stretch, nil for none.
  public var wrappedValue: ByteRange? {
    get { bits == .max ? nil : ByteRange(offset: Int(bits & 0xFFFF), count: Int(bits >> 16)) }
    set { bits = newValue.map { UInt32($0.offset) | UInt32($0.count) << 16 } ?? .max }
  }
}

internal import HTTPMessage

/// The fields of the header block being received. They are appended to the request together, when the block is
/// complete or the received bytes are consumed, which costs less than field by field.
///
/// The memory is shared by the sessions of one thread (`RequestStreamPool`), so each session settles its block
/// before the next one runs.
struct FieldBlock {
  /// The size of the memory in bytes. A header list within the limit has fewer bytes when packed.
  static let capacity = HTTP2Limits.maxHeaderListSize

  /// The stream the fields belong to; 0 for none.
  private(set) var stream: Int32 = 0
  /// The number of fields.
  private(set) var count = 0
  /// How much the stream's header list may still grow before it exceeds the limit.
  private var room = 0
  private var size = 0
  private let memory: UnsafeMutableRawPointer

  /// - Parameter memory: a buffer of `capacity` bytes.
  init(memory: UnsafeMutableRawPointer) { self.memory = memory }

  /// Begins a header block of a request that may already have fields.
  ///
  /// - Parameter isTrailer: whether the block is a trailer section, which is counted as a list of its own.
  mutating func begin(of request: borrowing HTTPRequest, isTrailer: Bool) {
    forget()
    stream = request.stream
    room = request.headersTooLarge ? 0 : Self.capacity - (isTrailer ? 0 : request.headers.listSize)
  }

  /// Discards all fields.
  mutating func forget() {
    stream = 0
    count = 0
    size = 0
    room = 0
  }

  /// Appends a field.
  ///
  /// - Returns: false if the list would exceed the limit; then this field and all later ones are rejected.
  @inline(__always)
  mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) -> Bool {
    let counted = name.count &+ value.count &+ 32
    guard counted <= room else {
      room = 0
      return false
    }
    room &-= counted
    HeaderList.pack(name: name, value: value, to: memory + size)
    size &+= HeaderList.size(name: name.count, value: value.count)
    count &+= 1
    return true
  }

  /// Appends the received fields to their request.
  func append(to request: inout HTTPRequest) {
    request.headers.append(packed: UnsafeRawBufferPointer(start: memory, count: size), count: count)
  }
}

internal import HTTPMessage

/// The fields of the header block that is being read, until it has come whole or what came of it was read: then they go to
/// the request as a whole, which costs less than field by field.
///
/// They stand in memory that the sessions of one thread share (`RequestStreamPool`), so each settles its block before another
/// has its turn.
struct FieldBlock {
  /// What there is room for: a list that counts no more than this has fewer bytes when it is packed.
  static let capacity = HTTP2Limits.maxHeaderListSize

  /// Whose they are; 0 for nobody's.
  private(set) var stream: Int32 = 0
  /// How many fields there are.
  private(set) var count = 0
  /// How many fields' lengths are left before the list of the stream counts more than is allowed.
  private var room = 0
  private var size = 0
  private let memory: UnsafeMutableRawPointer

  /// - Parameter memory: of `capacity` bytes.
  init(memory: UnsafeMutableRawPointer) { self.memory = memory }

  /// Begins with a block of a request, of which there may be fields already.
  ///
  /// - Parameter isTrailer: it stands behind the body, and is a list of its own.
  mutating func begin(of request: borrowing HTTPRequest, isTrailer: Bool) {
    forget()
    stream = request.stream
    room = request.headersTooLarge ? 0 : Self.capacity - (isTrailer ? 0 : request.headers.listSize)
  }

  /// Begins with none.
  mutating func forget() {
    stream = 0
    count = 0
    size = 0
    room = 0
  }

  /// Adds a field.
  ///
  /// - Returns: false, with nothing added now or later, if the list would count more than is allowed.
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

  /// Adds what came to its request.
  func append(to request: inout HTTPRequest) {
    request.headers.append(packed: UnsafeRawBufferPointer(start: memory, count: size), count: count)
  }
}

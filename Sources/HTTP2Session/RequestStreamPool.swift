/// Objects of closed streams with their buffers, for the next streams, and memory that nghttp2 needs for a short time.
///
/// The sessions of one event loop share a pool, so that an idle connection owns nothing of it. Not Sendable: all sessions
/// that share one live on one thread.
public final class RequestStreamPool {
  /// More are not kept, so that a burst does not stay in memory: with the longest requests these take 4 MB.
  static let limit = 256

  /// Each is retained once.
  @exclusivity(unchecked) private var free: [Unmanaged<RequestStream>] = []
  /// What nghttp2's small objects are made of.
  let small = SmallBlocks()
  /// Where a session puts a frame together (`SessionMemory`).
  let frameBlock = UnsafeMutableRawPointer.allocate(byteCount: SessionMemory.frameSize, alignment: 16)
  /// The table of streams of a session that ended, for the next one: its page need not be asked of the system again.
  @exclusivity(unchecked) var spareTable: UnsafeMutableRawPointer?
  /// Where the fields of a header block stand while it is read.
  let fieldBlock = UnsafeMutableRawPointer.allocate(byteCount: FieldBlock.capacity, alignment: 16)

  /// What nghttp2 gets instead of HEADERS with coded strings.
  let plainHeaders = PlainHeaders()

  /// An empty pool.
  public init() {}

  deinit {
    for stream in free { stream.release() }
    spareTable.map(SessionMemory.unmapTable)
    frameBlock.deallocate()
    fieldBlock.deallocate()
  }

  /// How many objects wait for a stream.
  var count: Int { free.count }

  /// An object with whatever was in it, retained once: for the caller to give back.
  func take() -> Unmanaged<RequestStream> { free.popLast() ?? .passRetained(RequestStream()) }

  /// Takes back an object that nobody reads any more, with its one retain.
  func give(_ stream: Unmanaged<RequestStream>) {
    if free.count < Self.limit { free.append(stream) } else { stream.release() }
  }
}

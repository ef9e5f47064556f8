/// Reusable stream objects with their buffers, and temporary memory for nghttp2.
///
/// The sessions of one event loop share a pool, so that an idle connection owns none of this memory. Not Sendable:
/// all sessions that share a pool are confined to one thread.
public final class RequestStreamPool {
  /// The maximum number of free objects, so that memory used by a burst is released. With requests of maximum size
  /// they take 4 MB.
  static let limit = 256

  /// The free objects, each retained once.
  @exclusivity(unchecked) private var free: [Unmanaged<RequestStream>] = []
  /// The allocator for nghttp2's small objects.
  let small = SmallBlocks()
  /// The buffer in which a session assembles a frame (`SessionMemory`).
  let frameBlock = UnsafeMutableRawPointer.allocate(byteCount: SessionMemory.frameSize, alignment: 16)
  /// The stream table of an ended session, kept for the next one to avoid another `mmap`.
  @exclusivity(unchecked) var spareTable: UnsafeMutableRawPointer?
  /// The buffer for the fields of the header block being received.
  let fieldBlock = UnsafeMutableRawPointer.allocate(byteCount: FieldBlock.capacity, alignment: 16)

  /// Rewrites HEADERS frames with Huffman-coded strings.
  let plainHeaders = PlainHeaders()

  /// Creates an empty pool.
  public init() {}

  deinit {
    for stream in free { stream.release() }
    spareTable.map(SessionMemory.unmapTable)
    frameBlock.deallocate()
    fieldBlock.deallocate()
  }

  /// The number of free objects.
  var count: Int { free.count }

  /// Returns an object in an arbitrary state, retained once on behalf of the caller.
  func take() -> Unmanaged<RequestStream> { free.popLast() ?? .passRetained(RequestStream()) }

  /// Takes back an object that is no longer read, together with its retain.
  func give(_ stream: Unmanaged<RequestStream>) {
    if free.count < Self.limit { free.append(stream) } else { stream.release() }
  }
}

import Faults
import NIOCore
import TLSEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Musl)
  import Musl
#else
  import Glibc
#endif

/// Reading from the socket.
extension ConnectionHandler {
  /// The size of the buffer that NIO keeps for each connection. A push that arrives alone usually fits.
  static let firstReadSize = 2 << 10
  /// How often the event loop's buffer is filled before other connections get their turn.
  private static let maxPortions = 4

  /// Processes the bytes that NIO read and, if they filled its buffer, reads the rest from the socket directly.
  ///
  /// With NIO alone each busy connection would keep a buffer as large as the most that it received at once. Eight of
  /// these no longer fit into a core's cache, and a thousand would take hundreds of megabytes.
  func takeInput(beginningWith beginning: ByteBuffer, _ context: ChannelHandlerContext) {
    let portion = scratch.cipherText
    guard beginning.writableBytes == 0, beginning.readableBytes < portion.count, phase != .settingsDelayed else {
      return beginning.withUnsafeReadableBytes { take($0, context) }
    }
    beginning.withUnsafeReadableBytes { portion.copyMemory(from: $0) }
    var filled = beginning.readableBytes
    for _ in 0..<Self.maxPortions {
      filled += receiveAtOnce(UnsafeMutableRawBufferPointer(rebasing: portion[filled...]), context)
      guard filled > 0 else { return }
      take(UnsafeRawBufferPointer(rebasing: portion[..<filled]), context)
      // If the buffer is not full, the socket is empty. A client that does not read its responses is not read from.
      guard filled == portion.count, isWritable(context), phase != .settingsDelayed else { return }
      filled = 0
    }
  }

  /// Processes received bytes. The pointer is valid only during the call.
  private func take(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    if phase == .closing || phase == .mute { return }
    // NIO had already read these few buffers when reading stopped.
    if phase == .settingsDelayed { return tls.receive(bytes) }
    lastActivity = .now()
    bytesReceived += bytes.count
    if phase == .firstByte, let first = bytes.first {
      if Self.looksLikePlainText(first) { return refusePlainText(bytes, context) }
      phase = .handshake
      tls.stopsAfterGreeting = state.behaviour.load().plan.isActive(at: .tls)
    }
    tls.receive(bytes) { process(context) }
  }

  /// Reads from the socket without going through the channel.
  ///
  /// - Returns: the number of bytes read; 0 at the end of input or on an error, which NIO then meets with its next
  ///   read.
  private func receiveAtOnce(_ room: UnsafeMutableRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // An active channel owns its socket. Afterwards the descriptor may belong to another connection.
    guard let socket, context.channel.isActive else { return 0 }
    return max(0, recv(socket, room.baseAddress, room.count, 0))
  }
}

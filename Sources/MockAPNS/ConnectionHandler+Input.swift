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

/// How what a client sends gets from the socket to where it is worked on.
extension ConnectionHandler {
  /// How much NIO reads at once. Every connection keeps a buffer of this size. A push that comes alone fits as a rule.
  static let firstReadSize = 2 << 10
  /// How often the buffer of the event loop is filled before other connections have their turn.
  private static let maxPortions = 4

  /// Takes what NIO read, and what the socket has besides if that was only the beginning.
  ///
  /// With NIO alone each busy connection would have buffers of its own as large as the most that it sent at once. Eight of
  /// them no longer fit into a core's cache, and a thousand would take hundreds of megabytes.
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
      // With room left it was all there is. A client that does not read its answers is not read from either.
      guard filled == portion.count, isWritable(context), phase != .settingsDelayed else { return }
      filled = 0
    }
  }

  /// Takes what came on the socket. It is valid during the call.
  private func take(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
    if phase == .closing || phase == .mute { return }
    // What NIO had already read when reading stopped: a few of its small buffers.
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

  /// - Returns: how many bytes the socket gave. Of its end, and of an error, it says nothing: NIO will meet them again with
  ///   its next read.
  private func receiveAtOnce(_ room: UnsafeMutableRawBufferPointer, _ context: ChannelHandlerContext) -> Int {
    // A channel that is active has its socket. Once it has not, the number may be another connection's.
    guard let socket, context.channel.isActive else { return 0 }
    return max(0, recv(socket, room.baseAddress, room.count, 0))
  }
}

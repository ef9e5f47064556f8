import APNSMockInbox
internal import APNSMockNotation

/// What is known of the end of a connection, for the inbox.
struct ConnectionEndReport {
  /// An error that ended the connection.
  enum SocketFailure {
    /// The client reset it.
    case reset
    case other
  }

  private var reported: ConnectionEnd.Closing?
  /// Whether the server has closed the socket, so that the client's FIN is not seen.
  private var hasClosedSocket = false
  private var failure: SocketFailure?

  /// The server closes the socket.
  mutating func socketClosing() { hasClosedSocket = true }

  /// An error ends the connection; the first one counts.
  mutating func socketFailed(_ failure: SocketFailure) { self.failure = self.failure ?? failure }

  /// One more fact about the end of the connection is known.
  ///
  /// - Parameters:
  ///   - isClient: Whether the client ended it; ignored if the end was reported before.
  ///   - isOrderly: Whether the client has ended its side with close_notify.
  ///   - isReset: Whether the server resets the TCP connection.
  ///   - isFinal: Whether the socket is closed.
  ///   - lastReceivedAt: When the client last sent something, in monotonic nanoseconds.
  ///   - now: Monotonic nanoseconds.
  /// - Returns: All that is known; nil if nothing is new.
  mutating func add(
    byClient isClient: Bool, isOrderly: Bool, isReset: Bool, isFinal: Bool, lastReceivedAt: MonotonicTime,
    now: MonotonicTime
  ) -> ConnectionEnd.Closing? {
    let new = ConnectionEnd.Closing(
      by: reported?.initiator ?? (isClient ? .client : .server), at: reported?.at ?? now,
      lastReceivedAt: lastReceivedAt,
      isOrderly: isOrderly || reported?.isOrderly == true || isFinal && !hasClosedSocket && failure == nil,
      isReset: isReset || reported?.isReset == true || failure == .reset, isFinal: isFinal)
    guard new != reported else { return nil }
    reported = new
    return new
  }
}

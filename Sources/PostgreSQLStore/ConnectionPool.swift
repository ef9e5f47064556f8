internal import Dispatch
internal import NIOConcurrencyHelpers

/// Connections for readers, which are opened when they are needed.
final class ConnectionPool: Sendable {
  static let size = 4

  private let address: PostgreSQLAddress
  /// The time that a command may take.
  private let patience: Duration
  private let free = NIOLockedValueBox<[Connection]>([])
  private let slots: DispatchSemaphore

  init(_ address: PostgreSQLAddress, patience: Duration, size: Int = ConnectionPool.size) {
    (self.address, self.patience) = (address, patience)
    slots = DispatchSemaphore(value: size)
  }

  /// Lends a connection to `body`, which only reads. Waits while all are lent.
  func use<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    slots.wait()
    defer { slots.signal() }
    if let kept = free.withLockedValue({ $0.popLast() }) {
      do {
        return try use(kept, body)
      } catch  where kept.isBroken && !kept.isSilent {
        // The database may have been started again since the connection was last used.
        free.withLockedValue { $0 = [] }
      }
    }
    return try use(Connection(address, patience: patience), body)
  }

  private func use<Result>(_ connection: Connection, _ body: (Connection) throws -> Result) throws -> Result {
    do {
      let result = try body(connection)
      free.withLockedValue { $0.append(connection) }
      return result
    } catch {
      if connection.isSilent || (error as? PostgreSQLError)?.kind == .readOnly {
        free.withLockedValue { $0 = [] }
      } else if !connection.isBroken {
        free.withLockedValue { $0.append(connection) }
      }
      throw error
    }
  }

  func close() { free.withLockedValue { $0 = [] } }
}

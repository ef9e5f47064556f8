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

  /// Lends a connection to `body`. Waits while all are lent.
  func use<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    slots.wait()
    defer { slots.signal() }
    let kept = free.withLockedValue { $0.popLast() }
    do {
      return try use(kept ?? Connection(address, patience: patience), body)
    } catch is LostConnection where kept != nil {
      // The database may have been started again since the connection was last used. What callers do may be done twice.
      free.withLockedValue { $0 = [] }
      do {
        return try use(Connection(address, patience: patience), body)
      } catch let lost as LostConnection {
        throw lost.error
      }
    } catch let lost as LostConnection {
      throw lost.error
    }
  }

  private struct LostConnection: Error {
    let error: any Error
  }

  private func use<Result>(_ connection: Connection, _ body: (Connection) throws -> Result) throws -> Result {
    do {
      let result = try body(connection)
      free.withLockedValue { $0.append(connection) }
      return result
    } catch {
      switch error {
      case PostgreSQLError.commitUnknown: throw error
      case PostgreSQLError.readOnly: free.withLockedValue { $0 = [] }
      case _ where connection.isSilent: free.withLockedValue { $0 = [] }
      case _ where connection.isBroken: throw LostConnection(error: error)
      default: free.withLockedValue { $0.append(connection) }
      }
      throw error
    }
  }

  func close() { free.withLockedValue { $0 = [] } }
}

package import APNSMockInbox
import NIOConcurrencyHelpers
import APNSMockNotation
import Synchronization

/// The timeline of one connection: infrequent events, not single pushes.
package final class ConnectionLog: Sendable {
  /// The kinds of events.
  package enum Kind: String, Sendable {
    /// The connection was accepted.
    case accepted
    /// The TLS handshake completed or failed.
    case handshake
    /// The server sent SETTINGS.
    case settings
    /// The server sent GOAWAY.
    case goAway = "goaway"
    /// A stream or the whole connection was reset.
    case reset
    /// A fault affected the connection.
    case fault
    /// The connection was closed.
    case closed
  }

  /// An event on the connection.
  package struct Event: Sendable {
    /// The time of the server's clock, in milliseconds since 1970.
    package let at: Int64
    /// The kind of event.
    package let kind: Kind
    /// A description of the details.
    package let detail: String
  }

  /// The maximum number of events kept: the first 99 and the latest one. `dropped` counts the others.
  private static let limit = 100

  private struct State {
    var events: [Event] = []
    var facts: ConnectionFacts?
    var dropped = 0
    var isClosed = false
  }

  /// The connection's id, such as `c17`.
  package let id: String
  /// The connection's number, from 1.
  package let number: UInt64
  /// The index of the APNs listener that accepted the connection, from 0.
  package let listener: Int
  /// The client's address, `HOST:PORT`.
  package let client: String
  /// The client's address without the port.
  package let clientAddress: String
  private let state = NIOLockedValueBox(State())
  private let counted = Atomic<Int>(0)
  private let log: EventLog

  /// - Parameters:
  ///   - client: The client's address; nil if the client has already disconnected.
  ///   - events: The event log of the server, to which all events are added.
  init(number: UInt64, listener: Int, client: MockServer.Endpoint?, events: EventLog) {
    log = events
    id = "c\(number)"
    self.number = number
    self.listener = listener
    self.client = client?.description ?? "unknown"
    clientAddress = client?.host ?? "unknown"
  }

  /// The events so far, in order, and the number of events that were not kept.
  package var events: (kept: [Event], dropped: Int) { state.withLockedValue { ($0.events, $0.dropped) } }

  /// The facts known since the handshake; nil before.
  package var facts: ConnectionFacts? { state.withLockedValue { $0.facts } }

  /// Whether the connection is closed.
  package var isClosed: Bool { state.withLockedValue { $0.isClosed } }

  /// The number of pushes received.
  package var pushes: Int { counted.load(ordering: .relaxed) }

  func add(_ kind: Kind, _ detail: String, at time: Int64) {
    let event = Event(at: time, kind: kind, detail: detail)
    state.withLockedValue { state in
      if kind == .closed { state.isClosed = true }
      if state.events.count < Self.limit {
        state.events.append(event)
      } else {
        state.events[Self.limit - 1] = event
        state.dropped += 1
      }
    }
    log.append(.connection) { writer in
      writer.member("id", id)
      writer.member("event", kind.rawValue)
      writer.member("detail", detail)
      writer.member("at", TimestampFormat.text(time))
      writer.member("listener", listener)
      writer.member("client", client)
    }
  }

  func opened(_ facts: ConnectionFacts) {
    state.withLockedValue { $0.facts = facts }
  }

  func count(pushes: Int) {
    counted.add(pushes, ordering: .relaxed)
  }
}

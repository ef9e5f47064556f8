public import Inbox
import NIOConcurrencyHelpers
import Notation
import Synchronization

/// What happened on one connection, for the timeline: seldom things, never each push.
public final class ConnectionLog: Sendable {
  /// What kind of thing happened.
  public enum Kind: String, Sendable {
    /// It was accepted.
    case accepted
    /// Its TLS handshake is through, or went wrong.
    case handshake
    /// SETTINGS went out.
    case settings
    /// GOAWAY went out.
    case goAway = "goaway"
    /// A stream was reset, or the whole connection.
    case reset
    /// A fault was done to it.
    case fault
    /// It ended.
    case closed
  }

  /// One thing that happened.
  public struct Event: Sendable {
    /// Milliseconds since 1970 of the server's clock.
    public let at: Int64
    /// What kind of thing.
    public let kind: Kind
    /// The rest, in words.
    public let detail: String
  }

  /// More than these are not kept: the first ones and the last one tell the most.
  private static let limit = 100

  private struct State {
    var events: [Event] = []
    var facts: ConnectionFacts?
    var dropped = 0
    var isClosed = false
  }

  /// How the connection is called: `c17`.
  public let id: String
  /// Its number, from 1.
  public let number: UInt64
  /// Which APNs listener it came in by, from 0.
  public let listener: Int
  /// The provider's address, `HOST:PORT`.
  public let client: String
  /// The same without the port.
  public let clientAddress: String
  private let state = NIOLockedValueBox(State())
  private let counted = Atomic<Int>(0)
  private let log: EventLog

  /// - Parameters:
  ///   - client: nil if it is gone already.
  ///   - events: where everybody is told of what happens to it.
  init(number: UInt64, listener: Int, client: Endpoint?, events: EventLog) {
    log = events
    id = "c\(number)"
    self.number = number
    self.listener = listener
    self.client = client?.description ?? "unknown"
    clientAddress = client?.host ?? "unknown"
  }

  /// What happened until now, in order; the second part says how many more things were not kept.
  public var events: (kept: [Event], dropped: Int) { state.withLockedValue { ($0.events, $0.dropped) } }

  /// What is known since the handshake; nil before.
  public var facts: ConnectionFacts? { state.withLockedValue { $0.facts } }

  /// Whether it has ended.
  public var isClosed: Bool { state.withLockedValue { $0.isClosed } }

  /// How many pushes came.
  public var pushes: Int { counted.load(ordering: .relaxed) }

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
    log.note(.connection) { writer in
      writer.member("id", id)
      writer.member("event", kind.rawValue)
      writer.member("detail", detail)
      writer.member("at", WrittenTime.text(time))
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

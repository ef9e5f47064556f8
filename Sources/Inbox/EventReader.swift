public import APNSRules
internal import Notation

/// Somebody who follows a log of events, until it is dropped.
///
/// ```swift
/// var place = reader.start
/// for await _ in reader.news {
///   while let events = reader.read(after: &place, selection, rulebook: rulebook) { send(events) }
/// }
/// ```
public final class EventReader: Sendable {
  /// An event as it is told.
  public struct Told: Sendable {
    /// Its number; that of the event to go on after, for a gap that only this reader has.
    public let id: Int
    /// What kind of event it is: `push`, `push.updated`, `gap`, or the name of a note.
    public let name: String
    /// What there is to tell: a JSON object in one line.
    public let data: [UInt8]
  }

  /// The event after which this reader begins.
  public let start: Int
  /// A value whenever there may be events to read; its end is that of the log.
  public let news: AsyncStream<Void>

  private let log: EventLog
  private let number: Int
  private let signal: AsyncStream<Void>.Continuation

  init(
    log: EventLog, number: Int, news: AsyncStream<Void>, signal: AsyncStream<Void>.Continuation, start: Int
  ) {
    self.log = log
    self.number = number
    self.news = news
    self.signal = signal
    self.start = start
  }

  deinit { log.leave(number) }

  /// Makes `news` yield although there may be none.
  public func wake() { signal.yield() }

  /// Ends `news`, because nobody reads any more.
  public func stop() { signal.finish() }

  /// The next events, possibly none of those that were looked at; nil when all were.
  ///
  /// - Parameters:
  ///   - place: The event after which to read; moved behind what was read.
  ///   - selection: Which pushes are meant. All other events are.
  ///   - inbox: Where they are, for the findings that several of them prove.
  public func read(after place: inout Int, _ selection: Selection, rulebook: Rulebook, in inbox: Inbox? = nil)
    -> [Told]?
  {
    let piece = log.events(after: place)
    guard piece.hasGap || !piece.events.isEmpty else { return nil }
    var told: [Told] = []
    if piece.hasGap { told.append(Self.gap(nil, id: piece.place)) }
    for event in piece.events {
      switch event.content {
      case .push(let record) where selection.contains(record):
        told.append(Self.told(event.id, "push") { record.writeMembers(to: &$0, rulebook: rulebook, in: inbox) })
      case .updated(let record) where selection.contains(record):
        told.append(Self.told(event.id, "push.updated") { record.writeMembers(to: &$0, rulebook: rulebook, in: inbox) })
      case .push, .updated: break
      case .note(let note): told.append(Told(id: event.id, name: note.kind.rawValue, data: note.json))
      case .gap(let missed): told.append(Self.gap(missed, id: event.id))
      }
    }
    place = piece.events.last?.id ?? piece.place
    return told
  }

  private static func gap(_ missed: Int?, id: Int) -> Told {
    told(id, "gap") { writer in
      writer.member("missed", missed)
      writer.member("message", "events are missing here: read /api/v1/pushes for what is in the inbox")
    }
  }

  private static func told(_ id: Int, _ name: String, _ members: (inout JSONWriter) -> Void) -> Told {
    var writer = JSONWriter()
    writer.object(members)
    return Told(id: id, name: name, data: writer.bytes)
  }
}

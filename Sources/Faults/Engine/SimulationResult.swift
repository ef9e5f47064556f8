public import Notation

/// What came of a simulation.
public struct SimulationResult: Sendable, Equatable {
  /// How often something was.
  public struct Count: Sendable, Equatable {
    /// What was.
    public let name: String
    /// How often.
    public let count: Int
  }

  /// The profile's name.
  public let profile: String
  /// The seed of all draws.
  public let seed: UInt64
  /// How many pushes were sent.
  public let pushes: Int
  /// What became of the pushes, the most common first: status and reason of the answer, or the name of the action that
  /// stood in its way. Their sum is `pushes`.
  public let outcomes: [Count]
  /// What was added to outcomes or connections, by the name of the action, the most common first.
  public let additions: [Count]
  /// What ended connections between pushes, by the name of the action, the most common first.
  public let connectionEnds: [Count]
  /// How often each rule fired, in the order they are looked at.
  public let rules: [Count]

  static func sorted(_ counts: [String: Int]) -> [Count] {
    counts.map { Count(name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
  }

  /// A table for people.
  public var text: String {
    let parts = [
      ("outcomes", outcomes), ("added", additions), ("connections ended", connectionEnds), ("rules fired", rules),
    ]
    let width = parts.flatMap(\.1).reduce(0) { max($0, $1.name.count) }
    let digits = String(pushes).count
    var text = "profile \(profile), seed \(seed): \(pushes) pushes"
    for (title, counts) in parts where !counts.isEmpty {
      text += "\n\(title)"
      for entry in counts {
        let count = String(entry.count)
        text += "\n  " + entry.name + String(repeating: " ", count: width - entry.name.count) + "  "
        text += String(repeating: " ", count: max(0, digits - count.count)) + count
        if title == "outcomes" { text += "  \(Self.percent(entry.count, of: pushes))" }
      }
    }
    return text
  }

  /// `15.3%`.
  private static func percent(_ part: Int, of whole: Int) -> String {
    let tenths = whole > 0 ? (part * 1000 + whole / 2) / whole : 0
    return "\(tenths / 10).\(tenths % 10)%"
  }

  /// Writes it as the next value.
  public func write(to writer: inout JSONWriter) {
    write(to: &writer) { _ in }
  }

  /// The same with further members at its end.
  public func write(to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void) {
    writer.object { writer in
      writer.member("profile", profile)
      writer.member("seed", seed)
      writer.member("pushes", pushes)
      for (name, counts) in [
        ("outcomes", outcomes), ("additions", additions), ("connection_ends", connectionEnds), ("rules", rules),
      ] {
        writer.objectMember(name) { writer in
          for entry in counts { writer.member(entry.name, entry.count) }
        }
      }
      members(&writer)
    }
  }
}

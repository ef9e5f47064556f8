package import APNSMockNotation

/// The result of a simulation.
package struct SimulationResult: Sendable, Equatable {
  /// A count with a name.
  package struct Count: Sendable, Equatable {
    /// The name of what is counted.
    package let name: String
    /// The number of occurrences.
    package let count: Int
  }

  /// The profile's name.
  package let profile: String
  /// The seed of all draws.
  package let seed: UInt64
  /// The number of pushes sent.
  package let pushes: Int
  /// The outcomes of the pushes, the most frequent first: status and reason of the response; or the name of the
  /// action that prevented one, on the push or on its connection; or `REFUSED_STREAM`, if APNs' own stream limit did;
  /// or `unsent`. The counts add up to `pushes`.
  package let outcomes: [Count]
  /// The actions that changed or delayed a response or a connection, the most frequent first.
  package let additions: [Count]
  /// The number of connections that were opened; those that failed before SETTINGS do not count.
  package let connections: Int
  /// The opened connections that ended, by the name of the action, the most frequent first. A connection ends when the
  /// provider receives GOAWAY, FIN, RST or `ExpiredProviderToken`.
  package let connectionEnds: [Count]
  /// The number of times each rule fired, in evaluation order.
  package let rules: [Count]

  static func sorted(_ counts: [String: Int]) -> [Count] {
    counts.map { Count(name: $0.key, count: $0.value) }.sorted { ($1.count, $0.name) < ($0.count, $1.name) }
  }

  /// The result as a table for users.
  package var text: String {
    let parts = [
      ("outcomes", outcomes), ("added", additions), ("connections ended", connectionEnds), ("rules fired", rules),
    ]
    let width = parts.flatMap(\.1).reduce(0) { max($0, $1.name.count) }
    let digits = String(pushes).count
    var text = "profile \(profile), seed \(seed): \(pushes) pushes, \(connections) connections"
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

  /// Returns a percentage such as `15.3%`.
  private static func percent(_ part: Int, of whole: Int) -> String {
    let tenths = whole > 0 ? (part * 1000 + whole / 2) / whole : 0
    return "\(tenths / 10).\(tenths % 10)%"
  }

  /// Writes the result to `writer` as a JSON object.
  package func write(to writer: inout JSONWriter) {
    write(to: &writer) { _ in }
  }

  /// Writes the result to `writer` as a JSON object, with additional members at its end.
  package func write(to writer: inout JSONWriter, and members: (inout JSONWriter) -> Void) {
    writer.object { writer in
      writer.member("profile", profile)
      writer.member("seed", seed)
      writer.member("pushes", pushes)
      writer.member("connections", connections)
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

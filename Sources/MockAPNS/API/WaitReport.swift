package import APNSMockInbox
internal import APNSMockNotation

/// The description of a wait that ended without the wanted number of pushes: the numbers, and the most similar pushes.
package struct WaitReport: Sendable {
  /// A push that does not meet all conditions of a wait.
  package struct NearestPush: Sendable {
    /// The record of the push.
    package let record: Record
    /// The result of each condition of the wait.
    package let criteria: [VerificationReport.Criterion]

    /// The correction that the failed check of APNs' rules names; nil if no check failed.
    package let advice: String?
  }

  /// The maximum number of records examined, newest first.
  private static let maxExamined = 10_000
  /// The largest number that a verification accepts.
  private static let unreachableCount = 1_000_000

  /// The wanted and the found number as text.
  private let message: String
  /// Whether no push has arrived since the inbox was last emptied.
  private let isInboxEmpty: Bool
  /// The most similar pushes, at most three: those that fail the fewest conditions first. Empty if enough pushes match.
  package let nearest: [NearestPush]

  /// Finds the pushes that are most similar to the conditions of a wait.
  ///
  /// - Parameters:
  ///   - result: The result of the wait.
  ///   - query: The condition of the wait.
  ///   - parameters: The parameters from which `query` was made.
  ///   - context: The context of the conditions, with a snapshot of the inbox.
  package init(
    _ result: WaitResult, of query: WaitQuery, parameters: [(name: String, value: String)], in inbox: Inbox,
    context: FilterContext
  ) async {
    message = result.message
    isInboxEmpty = inbox.snapshot().count == 0
    guard !result.isSatisfied, !result.isAbandoned, result.matched < query.count.minimum else {
      nearest = []
      return
    }
    // The numbers are known even if the store cannot be read a second time.
    nearest = (try? await Self.nearest(parameters, in: inbox, context)) ?? []
  }

  private static func nearest(
    _ parameters: [(name: String, value: String)], in inbox: Inbox, _ context: FilterContext
  ) async throws -> [NearestPush] {
    guard let rulebook = context.rulebook,
      let document = expectation(parameters, after: max(0, inbox.snapshot().lastSeq - maxExamined))
    else { return [] }
    let verification = try await Verification(searching: document, in: context)
    let report = try await inbox.verify(
      verification, in: VerificationContext(rulebook: rulebook, seed: nil, profile: nil))
    return try (report?.expectations.first?.nearest ?? []).compactMap { push in
      try inbox.record(seq: push.seq).map { record in
        NearestPush(record: record, criteria: push.criteria, advice: push.advice)
      }
    }
  }

  /// Returns a verification document with the same conditions that no inbox meets; nil if it cannot express them.
  private static func expectation(_ parameters: [(name: String, value: String)], after: Int) -> [UInt8]? {
    var conditions: [(name: String, values: [String])] = []
    var scopes: [String] = []
    for (name, value) in parameters {
      switch name {
      case "count", "timeout", "settle": continue
      case "scope": scopes.append(value)
      case "search", "seqs": return nil
      default:
        if let index = conditions.firstIndex(where: { $0.name == name }) {
          conditions[index].values.append(value)
        } else {
          conditions.append((name, [value]))
        }
      }
    }
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("after", after)
      if !scopes.isEmpty { writer.member("scope", scopes.joined(separator: " ")) }
      writer.arrayMember("expect") { writer in
        writer.object { writer in
          writer.objectMember("match") { writer in
            for (name, values) in conditions { writer.member(name, values) }
          }
          writer.objectMember("count") { $0.member("at_least", unreachableCount) }
        }
      }
    }
    return writer.bytes
  }

  /// The numbers, and for each of the most similar pushes the conditions with the wanted and the found value.
  package var text: String {
    let pushes = isInboxEmpty ? ["  the inbox is empty"] : nearest.flatMap(\.lines)
    return ([message] + pushes).joined(separator: "\n")
  }
}

extension WaitQuery.Count {
  /// The smallest number that meets the condition.
  fileprivate var minimum: Int {
    switch self {
    case .atLeast(let count), .exactly(let count): count
    }
  }
}

extension WaitReport.NearestPush {
  fileprivate var lines: [String] {
    var lines = ["  nearest: push \(record.name), \(record.endText)"]
    for criterion in criteria where !criterion.isMet {
      let hint = criterion.hint.map { " (\($0))" } ?? ""
      lines.append("    \(criterion.name): wanted \(criterion.wanted), found \(criterion.found)\(hint)")
    }
    let met = criteria.filter(\.isMet).map(\.name)
    if !met.isEmpty { lines.append("    as wanted: \(met.joined(separator: ", "))") }
    if let advice { lines.append("    advice: \(advice)") }
    return lines + ["    \(record.contentText)"]
  }
}

extension Record {
  /// How the attempt ended, such as `rejected with 400 BadDeviceToken`.
  package var endText: String {
    guard let status = sentResponse.status else { return outcome.rawValue }
    return "\(outcome.rawValue) with \(status)" + (sentReason.map { " \($0)" } ?? "")
  }
}

/// The result of a verification, with the members that the command uses.
struct VerificationResult: Decodable {
  var passed: Bool
  var inconclusive: Bool
  var expectations: [Expectation]
  var order: Overall?
  var no_others: Overall?
  var nothing_lost: Overall?
  var no_findings: Overall?
  var evicted: Int
  var seed: UInt64?
  var profile: String?
  var text: String

  struct Expectation: Decodable {
    var name: String
    var passed: Bool
    var text: String
  }

  struct Overall: Decodable {
    var criterion: String
    var passed: Bool
    var text: String
  }

  /// All checked parts: the name, whether the check passed, and the text for people.
  var parts: [(name: String, passed: Bool, text: String)] {
    expectations.map { ($0.name, $0.passed, $0.text) }
      + [order, no_others, nothing_lost, no_findings].compactMap(\.self).map { ($0.criterion, $0.passed, $0.text) }
  }

  /// The failure of the command; nil if the verification passed.
  var failure: CommandFailure? {
    if passed { return nil }
    if inconclusive {
      return CommandFailure(
        .inconclusive,
        "inconclusive: \(evicted) pushes were evicted before they were checked; "
          + "raise --max-records or --max-bytes, or reset before each test")
    }
    let missed = parts.count { !$0.passed }
    return CommandFailure(.failed, "\(missed) of \(parts.count) checks failed")
  }
}

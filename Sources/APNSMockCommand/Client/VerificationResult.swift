/// What the server found out, as far as the command tells it by itself.
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

  /// Everything that was looked at: what it is called, whether it is as expected, and the words for people.
  var parts: [(name: String, passed: Bool, text: String)] {
    expectations.map { ($0.name, $0.passed, $0.text) }
      + [order, no_others, nothing_lost, no_findings].compactMap(\.self).map { ($0.criterion, $0.passed, $0.text) }
  }

  /// Why the command does not end with 0; nil if it does.
  var failure: CommandFailure? {
    if passed { return nil }
    if inconclusive {
      return CommandFailure(
        .inconclusive,
        "inconclusive: \(evicted) pushes were dropped before they could be looked at; "
          + "raise --max-records or --max-bytes, or reset before each test")
    }
    let missed = parts.count { !$0.passed }
    return CommandFailure(.failed, "\(missed) of \(parts.count) not as expected")
  }
}

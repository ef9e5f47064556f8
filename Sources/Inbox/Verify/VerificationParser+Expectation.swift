internal import FaultModel
internal import Notation
internal import PushQuery

/// The members of an expectation.
private enum ExpectationKey: String, CaseIterable {
  case name, match, count, outcome, accepted, status, reason, delivery, retries
  case allowsNone = "allow_none"

  /// The keys that state how a push must end to count.
  static let endings = [outcome, accepted, status, reason, delivery]
}

/// The members of `count`.
private enum CountKey: String, CaseIterable {
  case exactly
  case atLeast = "at_least"
  case atMost = "at_most"
}

/// The members of `retries`.
private enum RetriesKey: String, CaseIterable {
  case min, max
  case minFirstDelay = "min_first_delay"
  case maxFirstDelay = "max_first_delay"
  case growing, finally
}

extension VerificationParser {
  /// The largest count that an expectation may state.
  private static let maxCount = 1_000_000

  /// Parses one expectation.
  ///
  /// - Parameter number: The position of the expectation in the list, from 1.
  mutating func expectation(_ node: Located, number: Int) -> Expectation {
    var expectation = Expectation(name: "expectation \(number)")
    guard let members = members(node, what: "an expectation", of: ExpectationKey.self) else { return expectation }
    if let node = members[.name] { expectation.name = text(node, what: "a name") ?? expectation.name }
    if let node = members[.match] { match(node, &expectation.selection) }
    for key in ExpectationKey.endings {
      guard let node = members[key] else { continue }
      let words = ending(node, key, &expectation.ending)
      if !words.isEmpty { expectation.endingWords.append(words.joinedWithOr) }
    }
    if let node = members[.allowsNone] { expectation.allowsNone = flag(node) ?? false }
    if let node = members[.count] {
      expectation.count = count(node)
    } else if members[.retries] == nil {
      expectation.count = CountBounds(minimum: 1)
    }
    if let node = members[.retries] { expectation.retries = retries(node) }
    return expectation
  }

  // MARK: - Outcome

  /// Adds conditions on one field.
  ///
  /// - Returns: The wanted values as text.
  private mutating func ending(_ node: Located, _ key: ExpectationKey, _ filter: inout Filter) -> [String] {
    var words: [String] = []
    for element in listOrOne(node) where !isFull {
      guard let value = scalar(element) else { continue }
      let term = QueryTerm(name: key.rawValue, value: value)
      do throws(FilterError) {
        try filter.add(term, in: context)
      } catch {
        fail(element, error)
      }
      let shown = ReportText.shortened(term.value.text)
      words.append((term.isNegated ? "not " : "") + (key == .outcome ? shown : "\(key.rawValue) \(shown)"))
    }
    return words
  }

  /// Returns a scalar in the form used in a query.
  private mutating func scalar(_ node: Located) -> String? {
    switch node.value {
    case .text(let text), .number(let text): return text
    case .flag(let flag): return String(flag)
    case .null:
      fail(
        node, "null is not a valid value",
        hint: "To match pushes without the field, write ! before the name and the value *.")
    case .list, .object: wrong(node, "a string, a number, true or false")
    }
    return nil
  }

  // MARK: - Match

  private mutating func match(_ node: Located, _ selection: inout Selection) {
    if case .text(let query) = node.value {
      do throws(FilterError) {
        try selection.add(name: "q", value: query, in: context)
      } catch {
        fail(node, error)
      }
      return
    }
    for (name, member) in entries(node, what: "an object of fields, or a query") ?? [] where !isFull {
      switch name {
      case "payload":
        for (pointer, value) in entries(member, what: "an object of JSON pointers and values") ?? []
        where !isFull {
          do throws(FilterError) {
            try selection.filter.add(payload: pointer, equalTo: value.value)
          } catch {
            fail(value, error)
          }
        }
      case "headers":
        for (header, value) in entries(member, what: "an object of header names and values") ?? []
        where !isFull {
          add("header." + header, value, &selection)
        }
      default: add(name, member, &selection)
      }
    }
  }

  private mutating func add(_ name: String, _ node: Located, _ selection: inout Selection) {
    let additionalNames = ["payload", "headers"]
    do throws(FilterError) {
      // Report a misspelled name whatever its value is.
      let field = name.hasPrefix("!") ? String(name.dropFirst()) : name
      if !["q", "after", "before"].contains(field) {
        _ = try QuerySubject(field, additionalNames: ["after", "before", "q"] + additionalNames)
      }
    } catch {
      return fail(node, error)
    }
    for element in listOrOne(node) where !isFull {
      guard let value = scalar(element) else { continue }
      do throws(FilterError) {
        try selection.add(name: name, value: value, additionalNames: additionalNames, in: context)
      } catch {
        fail(element, error)
      }
    }
  }

  // MARK: - Count

  private mutating func count(_ node: Located) -> CountBounds? {
    switch node.value {
    case .object: break
    case .number: return whole(node, in: 0...Self.maxCount).map { CountBounds(minimum: $0, maximum: $0) }
    default:
      wrong(node, "a whole number, or an object such as {\"at_least\": 2}")
      return nil
    }
    let before = problems.count
    guard let members = members(node, what: "a count", of: CountKey.self) else { return nil }
    func range(_ key: CountKey) -> Int? { members[key].flatMap { whole($0, in: 0...Self.maxCount) } }
    let (exactly, minimum, maximum) = (range(.exactly), range(.atLeast), range(.atMost))
    if let node = members[.exactly], members.count > 1 {
      fail(node, "exactly excludes other bounds", hint: "Omit at_least and at_most.")
    }
    if let minimum, let maximum, minimum > maximum {
      fail(node, "at_least is larger than at_most", hint: "Swap them, or use exactly.")
    }
    if members.isEmpty, problems.count == before {
      fail(node, "the number is missing", hint: "Specify exactly, at_least or at_most, as in {\"exactly\": 1}.")
    }
    return exactly.map { CountBounds(minimum: $0, maximum: $0) } ?? CountBounds(minimum: minimum ?? 0, maximum: maximum)
  }

  // MARK: - Retries

  private mutating func retries(_ node: Located) -> RetryPolicy? {
    let before = problems.count
    guard let members = members(node, what: "a retry policy", of: RetriesKey.self) else { return nil }
    var policy = RetryPolicy()
    if let node = members[.min] { policy.min = whole(node, in: 0...Self.maxCount) }
    if let node = members[.max] { policy.max = whole(node, in: 0...Self.maxCount) }
    if let node = members[.minFirstDelay] { policy.minFirstDelay = duration(node, maximum: .seconds(86_400)) }
    if let node = members[.maxFirstDelay] { policy.maxFirstDelay = duration(node, maximum: .seconds(86_400)) }
    if let node = members[.growing] { policy.isGrowing = flag(node) ?? false }
    if let node = members[.finally] {
      policy.endings = words(node, of: Record.Outcome.self, what: "outcome")
    }
    if let minimum = policy.min, let maximum = policy.max, minimum > maximum {
      fail(node, "min is larger than max", hint: "Swap them.")
    }
    if let minimum = policy.minFirstDelay, let maximum = policy.maxFirstDelay, minimum > maximum {
      fail(node, "min_first_delay is longer than max_first_delay", hint: "Swap them.")
    }
    if members.isEmpty, problems.count == before {
      fail(
        node, "the policy is missing",
        hint: "Specify one of \(RetriesKey.allCases.map(\.rawValue).joined(separator: ", ")).")
    }
    return policy
  }
}

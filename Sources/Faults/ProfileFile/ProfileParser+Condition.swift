import FaultModel
internal import APNSRules
internal import Notation

extension ProfileParser {
  /// Parses `when`.
  ///
  /// - Parameters:
  ///   - injectionPoint: The rule's injection point; nil if it is invalid.
  ///   - stage: Whether the rule applies after or before APNs' own validation.
  func condition(_ place: Located, at injectionPoint: InjectionPoint?, stage: Rule.Stage) -> Condition? {
    guard let map = map(place, ConditionKey.self) else { return nil }
    var condition = Condition()
    var isWhole = true
    func add(_ subject: Condition.Subject, _ value: Located, at position: TextPosition) {
      if let injectionPoint, !subject.isKnown(at: injectionPoint) {
        fail(
          at: position, value.path, "not available at \(injectionPoint.rawValue)",
          hint: subject.isInResponse
            ? "it is at response"
            : "it is at \(InjectionPoint.allCases.filter(subject.isKnown).map(\.rawValue).joinedWithOr)")
        isWhole = false
      } else if let match = match(value, of: subject, isJudged: stage == .afterValidation && injectionPoint == .request)
      {
        condition.tests.append(Condition.Test(subject, match))
      } else {
        isWhole = false
      }
    }
    for key in ConditionKey.allCases {
      guard let value = map[key] else { continue }
      switch key {
      case .payload:
        for entry in entries(value) ?? [] {
          guard let pointer = pointer(entry, in: value) else { continue }
          add(.payload(pointer: pointer), value.member(entry), at: entry.position)
        }
      case .header:
        for entry in entries(value) ?? [] {
          guard let name = fieldName(entry.key, at: entry.position, path: value.member(entry).path) else { continue }
          add(.header(name: name), value.member(entry), at: entry.position)
        }
      case .providerToken:
        guard let token = self.map(value, ProviderTokenKey.self) else { continue }
        for key in ProviderTokenKey.allCases {
          guard let value = token[key] else { continue }
          add(key.subject, value, at: token.position(of: key))
        }
      case .query:
        guard let tests = query(value, at: injectionPoint) else {
          isWhole = false
          continue
        }
        condition.query = text(value)
        condition.tests += tests
      case .not:
        for element in listOrOne(value) ?? [] {
          guard let exception = self.condition(element, at: injectionPoint, stage: stage) else {
            isWhole = false
            continue
          }
          if exception == Condition() {
            fail(element, "an empty not excludes everything", hint: "omit it, or add a condition")
          } else {
            condition.exceptions.append(exception)
          }
        }
      default:
        if let subject = key.subject { add(subject, value, at: map.position(of: key)) }
      }
    }
    // Reject the whole condition if a part is invalid: without that part, it would match more than intended.
    return isWhole ? condition : nil
  }

  /// Parses `q` into tests.
  private func query(_ place: Located, at injectionPoint: InjectionPoint?) -> [Condition.Test]? {
    guard let text = text(place) else { return nil }
    do throws(FilterError) {
      let tests = try Condition.tests(query: text)
      guard !tests.isEmpty else {
        fail(place, "the query is empty", hint: "omit it, or write FIELD:VALUE as in topic:com.acme.*")
        return nil
      }
      if let injectionPoint, let test = tests.first(where: { !$0.subject.isKnown(at: injectionPoint) }) {
        fail(
          place, "\(test.name) is not available at \(injectionPoint.rawValue)",
          hint: "it is at \(InjectionPoint.allCases.filter(test.subject.isKnown).map(\.rawValue).joinedWithOr)")
        return nil
      }
      return tests
    } catch {
      fail(place, error.message, hint: error.hint)
      return nil
    }
  }

  private func pointer(_ entry: YAMLNode.Entry, in place: Located) -> String? {
    if JSONPointer(entry.key) != nil { return entry.key }
    let guess = "/" + entry.key.replacing(".", with: "/")
    fail(
      at: entry.position, place.member(entry).path.shortened, "no JSON pointer",
      hint: entry.key.contains("~") || entry.key.hasPrefix("/")
        ? "~ is written ~0 and / in a name ~1" : "did you mean \"\(guess.shortened)\"?")
    return nil
  }

  /// Parses the name of a header field and converts it to lower case.
  func fieldName(_ text: String, at position: TextPosition, path: String) -> String? {
    let name = text.lowercased()
    guard (1...256).contains(name.utf8.count),
      name.utf8.allSatisfy({ $0.isLetterOrDigit || "!#$%&'*+-.^_`|~".utf8.contains($0) })
    else {
      fail(at: position, path.shortened, "\"\(text.shortened)\" is not a valid name of a header field")
      return nil
    }
    return name
  }

  // MARK: - Matches

  private func match(
    _ place: Located, of subject: Condition.Subject, isJudged: Bool
  ) -> Condition.Match? {
    switch place.node.content {
    case .scalar:
      guard !subject.isDuration else {
        fail(
          place, subject == .idle ? "an idle time is compared with a bound" : "an age is hardly ever just that",
          hint: "write {gt: 30m} or {lt: 30m}")
        return nil
      }
      if subject == .address { return address(place) }
      return value(place, of: subject, isJudged: isJudged).map(Condition.Match.equals)
    case .list:
      fail(place, "expected a value, not a list", hint: "write {in: […]}")
      return nil
    case .map: break
    }
    guard let map = map(place, MatchKey.self) else { return nil }
    let forms = MatchKey.allCases.filter { map.has($0) }
    guard let form = forms.first else {
      fail(place, "what must it be?", hint: "one of \(subject.forms.map(\.rawValue).joined(separator: ", "))")
      return nil
    }
    if let other = forms.dropFirst().first, !(form == .above && other == .below) {
      fail(
        at: map.position(of: other), map.path(of: other), "\(form.rawValue) is already specified",
        hint: "keep one of them; write a second test of the same value under not, or in another rule")
      return nil
    }
    for form in forms where !subject.forms.contains(form) {
      fail(
        at: map.position(of: form), map.path(of: form), "\(form.rawValue) does not apply to it",
        hint: "\(subject.forms.map(\.rawValue).joinedWithOr) can")
      return nil
    }
    return match(map, form, of: subject, isJudged: isJudged)
  }

  private func match(
    _ map: Map<MatchKey>, _ form: MatchKey, of subject: Condition.Subject, isJudged: Bool
  ) -> Condition.Match? {
    switch form {
    case .equals where subject == .address: return map[.equals].flatMap(address)
    case .oneOf where subject == .address: return map[.oneOf].flatMap(addresses)
    case .equals:
      return map[.equals].flatMap { value($0, of: subject, isJudged: isJudged) }.map(Condition.Match.equals)
    case .prefix:
      return map[.prefix].flatMap { text($0, pluralName: subject.pluralName) }.map { .prefix(subject.folded($0)) }
    case .glob:
      return map[.glob].flatMap { text($0, pluralName: subject.pluralName) }
        .map { .glob(TextPattern($0, foldsCase: subject.foldsCase)) }
    case .oneOf:
      guard let place = map[.oneOf], let elements = list(place) else { return nil }
      guard !elements.isEmpty else {
        fail(place, "an empty list: this can never match")
        return nil
      }
      let values = elements.map { value($0, of: subject, isJudged: isJudged) }
      let good = values.compactMap { $0 }
      return good.count == values.count ? .oneOf(Set(good)) : nil
    case .present: return map[.present].flatMap { flag($0) }.map(Condition.Match.present)
    case .above, .below: return bounds(map, of: subject)
    }
  }

  /// Parses an IP address, a CIDR block, or a pattern with `*`.
  private func address(_ place: Located) -> Condition.Match? {
    guard let text = text(place) else { return nil }
    if text.contains("*") { return .glob(TextPattern(text, foldsCase: true)) }
    return block(text, place).map { .within([$0]) }
  }

  private func addresses(_ place: Located) -> Condition.Match? {
    guard let elements = list(place) else { return nil }
    guard !elements.isEmpty else {
      fail(place, "an empty list: this can never match")
      return nil
    }
    let blocks = elements.map { element in text(element).flatMap { block($0, element) } }
    let good = blocks.compactMap(\.self)
    return good.count == blocks.count ? .within(good) : nil
  }

  private func block(_ text: String, _ place: Located) -> AddressBlock? {
    do throws(AddressBlock.Problem) {
      return try AddressBlock(text)
    } catch {
      switch error {
      case .address:
        fail(
          place, "\"\(text.shortened)\" is not an IP address or CIDR block",
          hint: "write 192.0.2.7, 10.0.0.0/8, \"fd00::/8\" or, outside of lists, a pattern such as \"10.0.*\"")
      case .prefixLength(let max):
        fail(place, "\"\(text.shortened)\" has no valid prefix length", hint: "it is a number from 0 to \(max)")
      case .hostBits:
        fail(
          place, "\"\(text.shortened)\" has bits set after its prefix",
          hint: "write the first address of the block, as in 10.0.0.0/8")
      }
      return nil
    }
  }

  private func bounds(_ map: Map<MatchKey>, of subject: Condition.Subject) -> Condition.Match? {
    func bound(_ key: MatchKey) -> (value: Double?, isFine: Bool) {
      guard let place = map[key] else { return (nil, true) }
      let value =
        switch subject {
        case .tokenAge, .age, .idle: duration(place)?.inSeconds
        case .size: bytes(place).map(Double.init)
        case .payload: number(place, from: -1e12, inclusive: true)
        default: whole(place, in: 0...Int(Int32.max)).map(Double.init)
        }
      return (value, value != nil)
    }
    let above = bound(.above)
    let below = bound(.below)
    guard above.isFine, below.isFine else { return nil }
    if Condition.isEmpty(above: above.value, below: below.value, of: subject) {
      fail(map.place, "these bounds contain no value: this can never match")
      return nil
    }
    return .between(above: above.value, below: below.value)
  }

  /// Parses a number of bytes, with or without a unit.
  private func bytes(_ place: Located) -> Int? {
    guard let scalar = scalar(place, for: .whole) else { return nil }
    if let bytes = SizeFormat.bytes(scalar.text), bytes <= 1 << 40 { return bytes }
    fail(place, scalar, "\(scalar.text.shortened) is not a number of bytes", hint: "sizes are written 4096 or 4K")
    return nil
  }

  /// Parses a value to compare with, in the form in which the traffic has it.
  private func value(_ place: Located, of subject: Condition.Subject, isJudged: Bool) -> String? {
    switch subject {
    case .priority:
      guard let number = whole(place, in: 0...255) else { return nil }
      if ![1, 5, 10].contains(number) { reportUnmatchable(place, "\(number)", "priorities are 10, 5 and 1", isJudged) }
      return String(number)
    case .listener: return whole(place, in: 0...65_535).map(String.init)
    case .attempt: return whole(place, in: 1...Int(Int32.max)).map(String.init)
    case .status: return whole(place, in: 200...599).map(String.init)
    case .size: return bytes(place).map(String.init)
    case .payload: return jsonValue(place)
    case .pushType:
      guard let text = text(place) else { return nil }
      let types = PushType.allCases.map(\.text)
      if !types.contains(text) {
        reportUnmatchable(
          place, text,
          Self.guess(text, among: types) ?? "the push types are \(types.joined(separator: ", "))", isJudged)
      }
      return text
    case .reason:
      guard let text = text(place) else { return nil }
      if Reason(text: text) == nil {
        warn(
          place, "unknown reason \"\(text.shortened)\"",
          hint: Self.guess(text, among: Reason.allCases.map(\.text)))
      }
      return text
    case .deviceToken:
      guard let text = text(place, pluralName: subject.pluralName) else { return nil }
      if !text.utf8.allSatisfy(Hexadecimal.isDigit) {
        reportUnmatchable(place, text, "device tokens are hexadecimal digits", isJudged)
      }
      return subject.folded(text)
    default: return text(place, pluralName: subject.pluralName).map(subject.folded)
    }
  }

  /// Records a value that never matches: an error if APNs rejects such pushes before the rule is evaluated,
  /// otherwise a warning.
  private func reportUnmatchable(_ place: Located, _ value: String, _ hint: String, _ isJudged: Bool) {
    if isJudged {
      fail(place, "\"\(value.shortened)\" can never match: APNs rejects it before this rule is evaluated", hint: hint)
    } else {
      warn(place, "APNs knows no \"\(value.shortened)\"", hint: hint)
    }
  }

  /// Parses a JSON string, number or boolean and returns its text.
  private func jsonValue(_ place: Located) -> String? {
    guard let scalar = scalar(place, for: .any) else { return nil }
    if scalar.isString || scalar.text == "true" || scalar.text == "false" { return scalar.text }
    if WrittenNumber.value(scalar.text) != nil { return scalar.text }
    return text(scalar, at: place)
  }
}

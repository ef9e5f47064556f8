internal import APNSMockHTTPMessage
package import APNSMockNotation

/// The conditions of a query on one field, compared with the field's values.
///
/// Among several conditions one is enough, and none of the negated ones may hold. Without a value only negated
/// conditions hold.
package struct FieldConditions: Sendable, Equatable {
  /// Tests by the type of the value.
  package struct Tests: Sendable {
    package private(set) var texts: [TextPattern] = []
    package private(set) var numbers: [ClosedRange<Int64>] = []
    package private(set) var values: [QueryValueTest] = []

    package var isEmpty: Bool { texts.isEmpty && numbers.isEmpty && values.isEmpty }

    mutating func append(_ test: QueryCondition.Test) {
      switch test {
      case .text(let pattern): texts.append(pattern)
      case .number(let range): numbers.append(range)
      case .value(let test): values.append(test)
      }
    }

    /// The spelling of the intended range, if two of these tests together allow every number, such as `>400` and
    /// `<500`.
    var intendedRange: String? {
      QueryValue.rangeInstead(
        of: numbers, values.compactMap { if case .within(let bounds) = $0 { bounds } else { nil } })
    }
  }

  package let subject: QuerySubject
  /// The field's name as first written.
  package let name: String
  /// The conditions in the order written.
  package private(set) var conditions: [QueryCondition] = []
  /// The tests of which one must hold, unless there are none.
  package private(set) var wanted = Tests()
  /// The tests of which none may hold.
  package private(set) var unwanted = Tests()
  /// The name of the header field; empty for other subjects.
  private let headerName: [UInt8]

  /// Creates an empty list of conditions.
  package init(_ subject: QuerySubject, name: String) {
    self.subject = subject
    self.name = name
    if case .header(let name) = subject { headerName = Array(name.utf8) } else { headerName = [] }
  }

  /// Returns whether both have the same text.
  package static func == (one: FieldConditions, other: FieldConditions) -> Bool {
    one.name == other.name && one.conditions.map(\.term) == other.conditions.map(\.term)
  }

  /// Adds a condition.
  ///
  /// - Throws: `FilterError` if the conditions would allow every number.
  package mutating func add(_ condition: QueryCondition) throws(FilterError) {
    conditions.append(condition)
    if condition.term.isNegated {
      unwanted.append(condition.test)
    } else {
      wanted.append(condition.test)
      if let range = wanted.intendedRange {
        throw FilterError(field: condition.term.name, value: condition.term.value.text, rangeInstead: range)
      }
    }
  }
}

// MARK: - Comparison

extension FieldConditions {
  /// Whether the conditions hold for a push without the value.
  package var matchesMissingValue: Bool { wanted.isEmpty }

  /// Returns whether the conditions hold, given a function that returns whether one of several tests does.
  @inline(__always)
  private func hold(_ holdsAny: (borrowing Tests) -> Bool) -> Bool {
    if !unwanted.isEmpty, holdsAny(unwanted) { return false }
    return wanted.isEmpty || holdsAny(wanted)
  }

  /// Returns whether the conditions hold, given a function that compares a pattern with the field's texts.
  package func hold(matching matches: (borrowing TextPattern) -> Bool) -> Bool {
    hold { $0.texts.containsElement(where: matches) }
  }

  /// Returns whether the conditions hold for a text.
  package func hold(_ text: UnsafeRawBufferPointer) -> Bool { hold { $0.texts.containsElement { $0.matches(text) } } }

  /// Returns whether the conditions hold for a text, or for its absence if nil.
  package func hold(_ text: String?) -> Bool {
    guard let text else { return matchesMissingValue }
    return text.withBytes { hold($0) }
  }

  /// Returns whether the conditions hold for several texts.
  package func hold(anyOf texts: [String]) -> Bool {
    hold(matching: { pattern in texts.contains { pattern.matches($0) } })
  }

  /// Returns whether the conditions hold for a number, or for its absence if nil.
  package func hold(_ number: Int64?) -> Bool {
    guard let number else { return matchesMissingValue }
    return hold { tests in
      for range in tests.numbers where range.contains(number) { return true }
      return !tests.texts.isEmpty && tests.texts.containsElement { $0.matches(String(number)) }
    }
  }

  /// Returns whether the conditions hold for a value of the payload, or for its absence if nil.
  package func hold(payload value: JSONValue?) -> Bool {
    guard let value else { return matchesMissingValue }
    return hold { $0.values.containsElement { $0.holds(forPayload: value) } }
  }

  /// Returns whether the conditions hold for the packed header fields: one value of the field must be wanted, and
  /// none unwanted.
  package func hold(headers packed: UnsafeRawBufferPointer) -> Bool {
    headerName.withUnsafeBytes { headerName in
      var (isWanted, isUnwanted) = (matchesMissingValue, false)
      var offset = 0
      while let (name, value) = HeaderList.field(in: packed, at: offset) {
        offset = value.indices.upperBound
        // The length alone rules out most names.
        guard Int(name.count) == headerName.count,
          packed[name].equals(headerName)
        else { continue }
        let value = packed[value]
        isWanted = isWanted || wanted.values.containsElement { $0.holds(forHeader: value) }
        isUnwanted = isUnwanted || unwanted.values.containsElement { $0.holds(forHeader: value) }
      }
      return isWanted && !isUnwanted
    }
  }

  /// Returns whether the conditions hold for the payload, its decoded form, and the name and value of each packed
  /// header field.
  ///
  /// - Parameter unescaped: The payload with its escape sequences decoded; set when it is first needed.
  package func hold(
    body: UnsafeRawBufferPointer, headers: UnsafeRawBufferPointer, unescaped: inout String?
  ) -> Bool {
    hold(matching: { pattern in
      if pattern.matches(body) || pattern.matchesField(in: headers) { return true }
      // Many providers escape all non-ASCII characters.
      guard body.firstPosition(of: UInt8(ascii: "\\")) != nil else { return false }
      let text = unescaped ?? JSONScanner.unescaped(body)
      unescaped = text
      return pattern.matches(text)
    })
  }
}

extension TextPattern {
  /// Returns whether the name or the value of any packed header field matches.
  fileprivate borrowing func matchesField(in packed: UnsafeRawBufferPointer) -> Bool {
    var isFound = false
    HeaderList.forEachField(in: packed) { name, value in
      isFound =
        isFound || matches(packed[value])
        || matches(packed[name])
    }
    return isFound
  }
}

extension Array {
  /// Returns whether `predicate` returns true for an element. Unlike `contains(where:)` it copies no element: copying
  /// a pattern counts references, which takes longer than a comparison.
  @inlinable @inline(__always)
  package func containsElement(where predicate: (borrowing Element) -> Bool) -> Bool {
    withUnsafeBufferPointer { elements in
      for index in elements.indices where elements.borrow(index, predicate) { return true }
      return false
    }
  }
}

extension UnsafeBufferPointer where Element: ~Copyable {
  /// Calls `read` with a borrowed element. The compiler omits the copy only if it does not know that `Element` is
  /// copyable.
  @inlinable @inline(__always)
  package func borrow<Result>(_ index: Int, _ read: (borrowing Element) -> Result) -> Result { read(self[index]) }
}

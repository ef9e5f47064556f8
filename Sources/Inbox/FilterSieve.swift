internal import Faults
internal import Notation

/// The conditions on one field in the form in which many records go through them: worked out when the filter is made, so
/// that what is done for each record is reading a value and comparing it.
enum FilterSieve: Sendable {
  /// The text of the field.
  case text(FilterField, TextConditions)
  /// The number of the field.
  case number(FilterField, NumberConditions)
  case accepted(FewValues)
  /// By their places among all outcomes.
  case outcome(FewValues)
  /// By `stateNumber`.
  case state(FewValues)
  case pushKey(PushKeyConditions)
  /// The values of the header fields with a name.
  case header(TextPattern, ValueConditions)
  /// What takes so long that one record at a time is looked at, and only after everything else.
  case dear

  init(_ group: Filter.Group) {
    let texts = TextConditions(group)
    switch group.subject {
    case .payload, .field(.text), .field(.finding): self = .dear
    case .header(let name):
      self = .header(TextPattern(pieces: [name], foldsCase: false), ValueConditions(group))
    case .field(.pushKey): self = .pushKey(PushKeyConditions(texts))
    case .field(let field):
      switch field.kind {
      case .text, .anywhere: self = .text(field, texts)
      case .number, .time, .size: self = .number(field, NumberConditions(group))
      case .flag:
        self = .accepted(
          FewValues(2) { value in group.holds { if case .flag(let flag) = $0 { flag == (value == 1) } else { false } } }
        )
      case .word where field == .is:
        self = .state(
          FewValues(8) { value in
            group.holds { if case .states(let states) = $0 { states.contains { $0.holds(in: value) } } else { false } }
          })
      case .word:
        self = .outcome(FewValues(Record.Outcome.allCases.count) { texts.hold(Record.Outcome.allCases[$0].rawValue) })
      }
    }
  }
}

/// Which of a few values fit, a bit for each.
struct FewValues: Sendable {
  private var bits: UInt8 = 0

  /// - Parameter count: how many values there are, at most 8.
  init(_ count: Int, where holds: (Int) -> Bool) {
    for value in 0..<count where holds(value) { bits |= 1 << UInt8(value) }
  }

  @inline(__always)
  func contains(_ value: Int) -> Bool { bits >> UInt8(truncatingIfNeeded: value) & 1 == 1 }
}

/// What a text, or one of several, has to be.
struct TextConditions: Sendable {
  let wanted: [TextPattern]
  let unwanted: [TextPattern]

  init(_ group: Filter.Group) {
    func patterns(_ tests: [FilterTest]) -> [TextPattern] {
      tests.compactMap { if case .text(let pattern) = $0 { pattern } else { nil } }
    }
    wanted = patterns(group.wanted)
    unwanted = patterns(group.unwanted)
  }

  /// Whether they hold for what has no text.
  var holdForNothing: Bool { wanted.isEmpty }

  /// Whether they hold for a text.
  func hold(_ text: UnsafeRawBufferPointer) -> Bool {
    if !unwanted.isEmpty, unwanted.holdsSome({ $0.matches(text) }) { return false }
    return wanted.isEmpty || wanted.holdsSome { $0.matches(text) }
  }

  /// Whether they hold for a text.
  func hold(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { hold(UnsafeRawBufferPointer($0)) }
  }

  /// Whether they hold for several texts: any may be wanted, none unwanted.
  func hold(anyOf texts: [String]) -> Bool {
    if unwanted.contains(where: { texts.contains(where: $0.matches) }) { return false }
    return wanted.isEmpty || wanted.contains { texts.contains(where: $0.matches) }
  }
}

/// What a number has to be.
struct NumberConditions: Sendable {
  private struct Numbers: Sendable {
    var ranges: [ClosedRange<Int64>] = []
    /// Of their digits.
    var patterns: [TextPattern] = []

    init(_ tests: [FilterTest]) {
      for test in tests {
        switch test {
        case .number(let range): ranges.append(range)
        case .text(let pattern): patterns.append(pattern)
        default: break
        }
      }
    }

    var isEmpty: Bool { ranges.isEmpty && patterns.isEmpty }

    func contains(_ number: Int64) -> Bool {
      for range in ranges where range.contains(number) { return true }
      return !patterns.isEmpty && patterns.holdsSome { $0.matches(String(number)) }
    }
  }

  private let wanted: Numbers
  private let unwanted: Numbers

  init(_ group: Filter.Group) {
    wanted = Numbers(group.wanted)
    unwanted = Numbers(group.unwanted)
  }

  /// Whether they hold for a number; nil if there is none.
  func hold(_ number: Int64?) -> Bool {
    guard let number else { return wanted.isEmpty }
    if !unwanted.isEmpty, unwanted.contains(number) { return false }
    return wanted.isEmpty || wanted.contains(number)
  }
}

/// What one of the values of a header field has to be: any may be wanted, none unwanted.
struct ValueConditions: Sendable {
  private let wanted: [QueryValueTest]
  private let unwanted: [QueryValueTest]

  /// Whether they hold where there is no value.
  var holdForNothing: Bool { wanted.isEmpty }

  init(_ group: Filter.Group) {
    func values(_ tests: [FilterTest]) -> [QueryValueTest] {
      tests.compactMap { if case .value(let test) = $0 { test } else { nil } }
    }
    wanted = values(group.wanted)
    unwanted = values(group.unwanted)
  }

  /// Whether a value is one of those that are wanted.
  func want(_ value: UnsafeRawBufferPointer) -> Bool { wanted.contains { $0.holds(forHeader: value) } }

  /// Whether a value is one of those that are not.
  func forbid(_ value: UnsafeRawBufferPointer) -> Bool { unwanted.contains { $0.holds(forHeader: value) } }
}

extension FilterState {
  /// Whether something is in this state whose number is `stateNumber`.
  func holds(in stateNumber: Int) -> Bool {
    switch self {
    case .retry: stateNumber & 1 != 0
    case .first: stateNumber & 1 == 0
    case .pending: stateNumber & 2 != 0
    case .duplicate: stateNumber & 4 != 0
    }
  }
}

extension Record {
  /// What it is.
  borrowing func states(isDuplicate: Bool) -> [FilterState] {
    let number = stateNumber(isDuplicate: isDuplicate)
    return FilterState.allCases.filter { $0.holds(in: number) }
  }

  /// All that `is` can ask for, in three bits; of being a duplicate the caller knows.
  borrowing func stateNumber(isDuplicate: Bool) -> Int {
    (attempt > 1 ? 1 : 0) | (outcome == .pending ? 2 : 0) | (isDuplicate ? 4 : 0)
  }
}

extension Array {
  /// Whether `holds` says so of one of the elements, each looked at where it stands.
  @inline(__always)
  func holdsSome(_ holds: (borrowing Element) -> Bool) -> Bool {
    withUnsafeBufferPointer { elements in
      for index in elements.indices where elements.borrow(index, holds) { return true }
      return false
    }
  }
}

extension UnsafeBufferPointer where Element: ~Copyable {
  /// Calls `read` with an element where it stands: a copy of a record would touch what it keeps in memory, whatever is
  /// asked of it, and a copy of a text counts references. The compiler makes none only where it does not know that it
  /// could.
  @inline(__always)
  func borrow<Result>(_ index: Int, _ read: (borrowing Element) -> Result) -> Result { read(self[index]) }
}

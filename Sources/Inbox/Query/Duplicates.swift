internal import APNSMockRules

/// What `is:duplicate` needs: the pushes that were accepted again after the same push was accepted, within the records of
/// the inbox. All records are read to find them, which uses up to forty bytes of memory for each until it is done.
extension InboxSnapshot {
  /// Returns the `seq` of each duplicate, ascending.
  ///
  /// - Throws: `StoreUnavailable` if the store cannot be read.
  func duplicates() throws(StoreUnavailable) -> [Int] {
    var search = DuplicateSearch(capacity: count)
    try records.forEach(in: Selection()) { record in
      search.add(record)
      return true
    }
    return search.found
  }

  /// Returns the `seq` of each duplicate like `duplicates()`, suspending after at most 4096 records.
  ///
  /// - Throws: `CancellationError` if the task was cancelled; `StoreUnavailable` if the store cannot be read.
  private func duplicatesInSlices() async throws -> [Int] {
    var search = DuplicateSearch(capacity: count)
    try await forEachSlice(of: Selection(), checksWork: false) { part in
      try records.forEach(in: part) { record in
        search.add(record)
        return true
      }
      return true
    }
    return search.found
  }

  /// Provides the filters that need them with the duplicates of the inbox.
  fileprivate func provideDuplicates(to filters: inout [Filter]) async throws {
    guard filters.contains(where: \.lacksDuplicates) else { return }
    let duplicates = try await duplicatesInSlices()
    for index in filters.indices { filters[index].provide(duplicates: duplicates) }
  }
}

extension Selection {
  /// Creates a selection like `init(_:in:)`, but suspends while the inbox is searched for duplicates, and for all attempts of
  /// the selected pushes if a parameter `attempts` is `all`.
  ///
  /// - Throws: `FilterError` for an unknown name or an invalid value; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read.
  package init(
    searching parameters: some Sequence<(name: String, value: String)>, in context: FilterContext
  ) async throws {
    var parameters = Array(parameters)
    let includesAllAttempts = try Self.removeAttempts(from: &parameters)
    try self.init(parameters, in: context.deferringDuplicates)
    try await provideDuplicates(in: context)
    if includesAllAttempts { try await includeAllAttempts(in: context.snapshot) }
  }

  fileprivate mutating func provideDuplicates(in context: FilterContext) async throws {
    var filters = [filter, scope]
    try await context.snapshot?.provideDuplicates(to: &filters)
    (filter, scope) = (filters[0], filters[1])
  }
}

extension PageQuery {
  /// Creates a query like `init(_:in:)`, but suspends as `Selection.init(searching:in:)` does.
  ///
  /// - Throws: The errors of `Selection.init(searching:in:)`.
  package init(
    searching parameters: some Sequence<(name: String, value: String)>, in context: FilterContext
  ) async throws {
    var parameters = Array(parameters)
    let includesAllAttempts = try Selection.removeAttempts(from: &parameters)
    try self.init(parameters, in: context.deferringDuplicates)
    try await selection.provideDuplicates(in: context)
    if includesAllAttempts { try await selection.includeAllAttempts(in: context.snapshot) }
  }
}

extension Verification {
  /// Parses a verification document like `init(json:in:)`, but suspends while the inbox is searched for duplicates.
  ///
  /// - Throws: `FileFailure` with all problems of the document; `CancellationError` if the task was cancelled;
  ///   `StoreUnavailable` if the store cannot be read.
  package init(searching json: [UInt8], in context: FilterContext) async throws {
    try self.init(json: json, in: context.deferringDuplicates)
    var filters = [scope]
    for expectation in expectations {
      filters += [expectation.selection.filter, expectation.selection.scope, expectation.ending]
    }
    try await context.snapshot?.provideDuplicates(to: &filters)
    scope = filters[0]
    for index in expectations.indices {
      expectations[index].selection.filter = filters[3 * index + 1]
      expectations[index].selection.scope = filters[3 * index + 2]
      expectations[index].ending = filters[3 * index + 3]
    }
  }
}

/// Finds the pushes that were accepted again, among records in ascending order.
private struct DuplicateSearch {
  private var accepted: PushKeySet
  /// The `seq` of those found.
  private(set) var found: [Int] = []

  /// - Parameter capacity: The maximum number of records.
  init(capacity: Int) { accepted = PushKeySet(capacity: capacity) }

  mutating func add(_ record: borrowing Record) {
    if record.accepted, !accepted.insert(record.pushKey) { found.append(record.seq) }
  }
}

/// A set of push keys: a hash table with open addressing, of which at most two thirds are used.
private struct PushKeySet {
  /// The number of keys for which there is room at the beginning, at most: the number of records that a store states may be wrong.
  private static let initialCapacity = 1 << 20

  // 0 marks a free slot; no key in the table is 0.
  private var slots: [UInt64] = []
  private var shift: UInt64 = 0
  private var count = 0
  /// Random, so that a client cannot choose keys that collide.
  private let factor = UInt64.random(in: .min ... .max) | 1

  /// - Parameter capacity: The expected number of keys.
  init(capacity: Int) {
    let capacity = min(max(1, capacity), Self.initialCapacity)
    makeRoom(bits: max(4, Int.bitWidth - capacity.leadingZeroBitCount + 1))
  }

  private mutating func makeRoom(bits: Int) {
    let former = slots
    slots = Array(repeating: 0, count: 1 << bits)
    shift = UInt64(UInt64.bitWidth - bits)
    for key in former where key != 0 { slots[slot(of: key)] = key }
  }

  /// Returns the slot of a key, or else the free one where it would be inserted.
  private func slot(of key: UInt64) -> Int {
    var index = Int(truncatingIfNeeded: (key &* factor) >> shift)
    while slots[index] != 0, slots[index] != key { index = (index + 1) & (slots.count - 1) }
    return index
  }

  /// Inserts a key.
  ///
  /// - Returns: Whether it was not present.
  mutating func insert(_ key: PushKey) -> Bool {
    let wanted = max(1, key.number)
    let index = slot(of: wanted)
    guard slots[index] == 0 else { return false }
    slots[index] = wanted
    count += 1
    if count > slots.count / 3 * 2 { makeRoom(bits: slots.count.trailingZeroBitCount + 1) }
    return true
  }
}

internal import NIOConcurrencyHelpers

/// What a server was set to and has counted: rows of its store besides the records, so that the next server continues from
/// them.
///
/// A row is a text with a name, such as `clock` or `device/phone`. A source returns the rows that have changed. The thread that
/// writes asks for them after it has taken the records of a batch, so that the state in the store is never older than a
/// record there.
package final class StoredServerState: Sendable {
  /// Changed rows by name; nil for a row to remove.
  package typealias Rows = [String: String?]

  private struct State {
    var source: (@Sendable (Set<String>) -> Rows)?
    /// The names of the rows in the store, and of those that were taken for it.
    var names: Set<String> = []
    /// The names of rows that have changed since rows were last taken.
    var changed: Set<String> = []
    /// Rows to remove, and rows of a batch that was given up.
    var others: Rows = [:]
    /// Whether changed rows were taken and are not written yet.
    var isBeingWritten = false
  }

  /// The number of rows that are read for one batch, so that no batch takes long.
  private static let limit = 2_048

  private let state = NIOLockedValueBox(State())

  /// Whether there are changes that are not written yet.
  package var hasChanges: Bool {
    state.withLockedValue { $0.source != nil && (!$0.changed.isEmpty || !$0.others.isEmpty || $0.isBeingWritten) }
  }

  /// Begins to store changes, of now and later.
  ///
  /// - Parameters:
  ///   - names: The names of the rows that are in the store.
  ///   - source: Returns the rows with names that have changed, and others that have changed since it was last called; nil for
  ///     a row to remove. Called on the thread that writes.
  package func start(
    with names: some Sequence<String>, _ source: @escaping @Sendable (_ changed: Set<String>) -> Rows
  ) {
    state.withLockedValue { ($0.names, $0.source, $0.changed) = (Set(names), source, []) }
  }

  /// Notes that rows have changed.
  package func didChange(_ names: String...) { state.withLockedValue { $0.changed.formUnion(names) } }

  /// Removes rows.
  package func remove(where isRemoved: (String) -> Bool) {
    state.withLockedValue { state in
      for name in state.names.union(state.changed).filter(isRemoved) { state.others[name] = .some(nil) }
      state.changed = state.changed.filter { !isRemoved($0) }
    }
  }

  /// Returns the changed rows for a batch, after which `didWrite` or `didLose` is called.
  func take() -> Rows {
    let (source, changed, others) = state.withLockedValue { state -> (((Set<String>) -> Rows)?, Set<String>, Rows) in
      guard let source = state.source else { return (nil, [], [:]) }
      let changed = state.changed.count > Self.limit ? Set(state.changed.prefix(Self.limit)) : state.changed
      defer {
        state.isBeingWritten = !changed.isEmpty || !state.others.isEmpty
        state.changed.subtract(changed)
        state.others = [:]
      }
      return (source, changed, state.others)
    }
    guard let source else { return [:] }
    let rows = others.merging(source(changed)) { _, newer in newer }
    if !rows.isEmpty {
      state.withLockedValue { state in
        for (name, value) in rows { if value == nil { state.names.remove(name) } else { state.names.insert(name) } }
      }
    }
    return rows
  }

  /// Notes that the rows of a batch were written.
  func didWrite() { state.withLockedValue { $0.isBeingWritten = false } }

  /// Notes that the rows of a batch were not written, and remain to be.
  func didLose(_ rows: Rows) {
    state.withLockedValue { state in
      state.others.merge(rows) { newer, _ in newer }
      state.isBeingWritten = false
    }
  }
}

extension Inbox {
  /// Waits until the changes of the state so far are stored, so that a change whose request was answered outlasts a crash. Does not
  /// wait while the store fails.
  package func storeServerState() async {
    guard let writer else { return }
    // Enough for the devices of the largest fixtures, and an end if others change the state all the time.
    for _ in 0..<512 where writer.serverState.hasChanges {
      guard (try? await writer.blocking { writer.flush() }) == true else { return }
    }
  }
}

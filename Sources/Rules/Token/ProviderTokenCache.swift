internal import APNSMockNotation

internal import APNSMockHTTPMessage
internal import Synchronization

/// A cache of one connection's latest provider tokens and their verification results, keyed by their exact bytes.
/// Valid tokens are cached so that a push needs no signature check, invalid ones so that a flood of them does not
/// cause any either.
///
/// A connection may begin with tokens that were accepted on other connections; `learn(from:)` collects them.
package struct ProviderTokenCache: Sendable {
  /// The inputs of the verification other than the token. A change discards all entries.
  struct Basis: Sendable, Equatable {
    var keys: UInt64
    var mode: RuleMode
  }

  private struct Entry {
    var authorization: [UInt8]
    var token: ProviderToken

    func matches(_ bytes: UnsafeRawBufferPointer) -> Bool {
      authorization.withUnsafeBytes { $0.equals(bytes) }
    }
  }

  private var entries: [Entry] = []
  private var basis: Basis?
  // The index of the entry added or found last.
  private var latest = 0
  /// The token that last passed all checks of the credential. If it is used again, the result can change
  /// only by its age and by blocked token updates.
  private(set) var current: ProviderToken?

  /// The maximum number of entries, and the maximum size of one in bytes: 33 KiB in total.
  private static let capacity = 8
  private static let sizeLimit = JSONWebToken.sizeLimit + 16

  /// Creates an empty cache.
  package init() {}

  /// Discards all entries if they were verified with other keys or under other rules.
  mutating func invalidate(unlessVerifiedWith basis: Basis) {
    if self.basis == basis { return }
    self = ProviderTokenCache()
    self.basis = basis
  }

  /// Returns the cached result for a value of `authorization`.
  mutating func find(_ authorization: UnsafeRawBufferPointer) -> ProviderToken? {
    if latest < entries.count, entries[latest].matches(authorization) { return entries[latest].token }
    for index in entries.indices where entries[index].matches(authorization) {
      latest = index
      return entries[index].token
    }
    return nil
  }

  /// Adds a token, replacing the oldest one that is not current.
  mutating func remember(_ token: ProviderToken, _ authorization: UnsafeRawBufferPointer) {
    // A longer token was rejected by its length alone, which is cheap to repeat.
    guard authorization.count <= Self.sizeLimit else { return }
    insert(Entry(authorization: Array(authorization), token: token))
  }

  private mutating func insert(_ entry: Entry) {
    if entries.count < Self.capacity {
      latest = entries.count
      entries.append(entry)
    } else {
      latest = (latest + 1) % Self.capacity
      if entries[latest].token === current { latest = (latest + 1) % Self.capacity }
      entries[latest] = entry
    }
  }

  /// Records that a token passed all checks of the credential.
  mutating func accept(_ token: ProviderToken) { current = token }

  /// Adds the token last accepted on a connection, for connections that begin later. Checks that depend on time or
  /// connection are made again there; only the signature check is skipped.
  package mutating func learn(from connection: borrowing ConnectionAuthentication) {
    guard let token = connection.known.current, let basis = connection.known.basis else { return }
    invalidate(unlessVerifiedWith: basis)
    if latest < entries.count, entries[latest].token === token { return }
    if let known = entries.firstIndex(where: { $0.token === token }) {
      latest = known
    } else if let entry = connection.known.entries.first(where: { $0.token === token }) {
      insert(entry)
    }
  }
}

/// The changes of the provider tokens of each team, shared by all connections of a server. Safe to call from any
/// thread.
package final class TeamTokenUpdates: Sendable {
  // Only teams with a verified provider token have an entry, so that the number of trusted keys bounds the memory.
  private let byTeam = Mutex<[String: TokenUpdates]>([:])

  /// Creates a table without changes.
  package init() {}

  /// Calls `body` with the changes of a team.
  func with<Result: Sendable>(_ team: String, _ body: (inout TokenUpdates) -> Result) -> Result {
    byTeam.withLock { body(&$0[team, default: TokenUpdates()]) }
  }

  /// Forgets all changes.
  package func reset() { byTeam.withLock { $0 = [:] } }
}

/// Counts the changes of the provider token of a connection or a team and blocks further pushes after too many (Protocol.md, section
/// 8.2: `token_update_latch` and `token_updates`), with the timing of section 3.2.
struct TokenUpdates: Sendable {
  private struct Seen: Equatable {
    var keyID: String
    var issuedAt: ServerTime
  }

  /// The tokens in use, at most `capacity`; the oldest one is replaced.
  private var seen: [Seen] = []
  private var oldest = 0
  /// When a token was last accepted that was not in `seen`.
  private var lastChange: ServerTime?
  /// The number of consecutive changes that were too fast.
  private(set) var fastChanges = 0
  private var isBlocked = false

  /// Enough for a day with a change every 20 minutes.
  private static let capacity = 72

  /// Returns until when pushes are blocked; nil if they are not.
  mutating func blockedUntil(now: ServerTime, interval: Int64) -> Int64? {
    guard isBlocked, let change = lastChangeNotAfter(now) else { return nil }
    if now &- change < interval { return change.addingClamped(interval) }
    isBlocked = false
    return nil
  }

  /// Records the token in use.
  ///
  /// - Returns: false if it is one change too many within `interval`; pushes are then blocked.
  mutating func admit(keyID: String, issuedAt: ServerTime, now: ServerTime, interval: Int64, free: Int) -> Bool {
    let token = Seen(keyID: keyID, issuedAt: issuedAt)
    if seen.contains(token) { return true }
    if let change = lastChangeNotAfter(now), now &- change < interval {
      guard fastChanges < free else {
        isBlocked = true
        return false
      }
      fastChanges += 1
    } else {
      fastChanges = 0
    }
    remember(token)
    lastChange = now
    return true
  }

  /// Blocks pushes as if a change had been too fast.
  mutating func block(now: ServerTime) {
    lastChange = now
    isBlocked = true
  }

  /// Moves a change that is in the future to `now`: a clock that was set back must not block a connection for
  /// longer than the interval.
  private mutating func lastChangeNotAfter(_ now: ServerTime) -> Int64? {
    if let change = lastChange, change > now { lastChange = now }
    return lastChange
  }

  private mutating func remember(_ token: Seen) {
    if seen.count < Self.capacity {
      seen.append(token)
    } else {
      seen[oldest] = token
      oldest = (oldest + 1) % Self.capacity
    }
  }
}

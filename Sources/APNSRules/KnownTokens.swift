internal import HTTPMessage

/// The last few provider tokens of one connection with what was found out about them, recognised by their exact bytes:
/// good ones, so that a push costs no signature check, and bad ones, so that a flood of them does not either.
///
/// A connection may begin with those that passed on others: `learn(from:)` gathers them.
package struct KnownTokens: Sendable {
  /// What the findings depend on besides the token; when it changes they are forgotten.
  struct Basis: Sendable, Equatable {
    var keys: UInt64
    var mode: RuleMode
    var environment: PushEnvironment
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
  // The newest entry, or the one that was found last.
  private var latest = 0
  /// The token that last passed all checks of the credential; while it comes again only its age and the latch can
  /// change the answer.
  private(set) var current: ProviderToken?

  /// At most this many are remembered, none of them much longer than the longest that is decoded: 33 KiB at worst.
  private static let capacity = 8
  private static let sizeLimit = JSONWebToken.sizeLimit + 16

  /// None is known.
  package init() {}

  /// Forgets everything if it was found out on another basis.
  mutating func rest(on basis: Basis) {
    if self.basis == basis { return }
    self = KnownTokens()
    self.basis = basis
  }

  /// What is known of the token with these bytes.
  mutating func find(_ authorization: UnsafeRawBufferPointer) -> ProviderToken? {
    if latest < entries.count, entries[latest].matches(authorization) { return entries[latest].token }
    for index in entries.indices where entries[index].matches(authorization) {
      latest = index
      return entries[index].token
    }
    return nil
  }

  /// Takes a token up in place of the oldest, sparing the current one.
  mutating func remember(_ token: ProviderToken, _ authorization: UnsafeRawBufferPointer) {
    // What is longer was refused by its length alone, which costs nothing to do again.
    guard authorization.count <= Self.sizeLimit else { return }
    take(Entry(authorization: Array(authorization), token: token))
  }

  private mutating func take(_ entry: Entry) {
    if entries.count < Self.capacity {
      latest = entries.count
      entries.append(entry)
    } else {
      latest = (latest + 1) % Self.capacity
      if entries[latest].token === current { latest = (latest + 1) % Self.capacity }
      entries[latest] = entry
    }
  }

  /// Notes that a token passed all checks of the credential.
  mutating func accept(_ token: ProviderToken) { current = token }

  /// Takes up the token that last passed on a connection, for those that begin later. What depends on time and connection
  /// is not taken up: there it has to pass again, but for its signature.
  package mutating func learn(from connection: borrowing ConnectionStanding) {
    guard let token = connection.known.current, let basis = connection.known.basis else { return }
    rest(on: basis)
    if latest < entries.count, entries[latest].token === token { return }
    if let known = entries.firstIndex(where: { $0.token === token }) {
      latest = known
    } else if let entry = connection.known.entries.first(where: { $0.token === token }) {
      take(entry)
    }
  }
}

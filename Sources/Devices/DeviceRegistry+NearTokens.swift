internal import APNSMockRules
internal import NIOConcurrencyHelpers
internal import APNSMockNotation

extension DeviceRegistry {
  /// A registered token that a received one is probably a distortion of.
  package struct NearToken: Sendable, Equatable {
    /// The registered token, in lower case.
    package let token: String
    /// What happened to it, to follow "the token".
    package let distortion: String
  }

  /// The maximum number of tokens among which cut ones are searched.
  private static let cutSearchLimit = 10_000
  /// The minimum number of digits of a cut token.
  private static let minCutDigits = 8

  /// Returns the registered token that a received one is probably a distortion of: encoded or decoded once too often, written
  /// with other characters, or cut. Nil if the received token is registered, or unlike all.
  ///
  /// - Parameter received: The rest of a path after `/3/device/`.
  package func nearToken(_ received: UnsafeRawBufferPointer) -> NearToken? {
    guard !isEmpty, !isRegistered(received) else { return nil }
    for candidate in NearDeviceToken.candidates(for: received)
    where candidate.digits.withUnsafeBytes({ isRegistered($0) }) {
      return NearToken(
        token: String(decoding: candidate.digits, as: UTF8.self).lowercased(), distortion: candidate.distortion)
    }
    return cutToken(String(decoding: received, as: UTF8.self).lowercased())
  }

  private func isRegistered(_ digits: UnsafeRawBufferPointer) -> Bool {
    state.withLockedValue { $0.tables.token(digits) != nil }
  }

  /// Returns the only registered token that begins or ends with these digits. More than `cutSearchLimit` tokens are not
  /// searched.
  private func cutToken(_ digits: String) -> NearToken? {
    guard digits.utf8.count >= Self.minCutDigits, digits.utf8.allSatisfy(Hexadecimal.isDigit), let order = tokenOrder
    else { return nil }
    if let token = Self.only(in: order.ascending, beginningWith: digits) {
      return NearToken(
        token: token, distortion: "was cut at its end, after \(digits.utf8.count) of \(token.utf8.count) digits")
    }
    guard let token = Self.only(in: order.reversed, beginningWith: String(digits.reversed())) else { return nil }
    let missing = token.utf8.count - digits.utf8.count
    return NearToken(
      token: String(token.reversed()), distortion: "lacks its first \(missing) of \(token.utf8.count) digits")
  }

  private static func only(in sorted: [String], beginningWith prefix: String) -> String? {
    var (low, high) = (0, sorted.count)
    while low < high {
      let middle = (low + high) / 2
      if sorted[middle] < prefix { low = middle + 1 } else { high = middle }
    }
    guard low < sorted.count, sorted[low].hasPrefix(prefix) else { return nil }
    return low + 1 < sorted.count && sorted[low + 1].hasPrefix(prefix) ? nil : sorted[low]
  }

  /// The tokens in order, as of the last change; nil if there are too many.
  private var tokenOrder: TokenOrder? {
    let version = state.withLockedValue { $0.version }
    return cachedTokenOrder.withLockedValue { cached in
      if let cached, cached.version == version { return cached.isLimited ? nil : cached }
      let tables = state.withLockedValue { $0.tables }
      let order = TokenOrder(tables, version: version, limit: Self.cutSearchLimit)
      cached = order
      return order.isLimited ? nil : order
    }
  }
}

/// The registered tokens in the order of their first and of their last digits.
struct TokenOrder: Sendable {
  let version: Int
  /// Whether there are too many tokens, so that both lists are empty.
  let isLimited: Bool
  let ascending: [String]
  /// The tokens written backwards.
  let reversed: [String]

  init(_ tables: DeviceTables, version: Int, limit: Int) {
    self.version = version
    isLimited = tables.tokenCount > limit
    let tokens = isLimited ? [] : tables.tokens.indices.filter { tables.tokens[$0].state != .free }
    ascending = tokens.map { tables.text(ofToken: DeviceTables.Index($0)) }.sorted()
    reversed = ascending.map { String($0.reversed()) }.sorted()
  }
}

extension DeviceRegistry {
  /// The names of registered apps and the topics of tokens that were registered alone: up to `limit`, also of devices that
  /// were removed.
  package func names(limit: Int) -> [String] { state.withLockedValue { Array($0.tables.allNames.prefix(limit)) } }

  /// A number that differs after each change of the registered devices, apps and tokens; not of what Live Activities show.
  package var version: Int { state.withLockedValue { $0.version } }
}

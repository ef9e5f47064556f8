internal import NIOConcurrencyHelpers
package import APNSMockNotation

extension DeviceRegistry {
  /// Returns the tokens that match `pattern` among `scanned` tokens, in the order of registration, from a position on.
  ///
  /// The text of a token, its push type, the id of its device, its bundle id or topic, and its states are compared.
  /// Holds the lock that pushes need, so `scanned` must be small.
  ///
  /// - Returns: The tokens, and the position after those compared; nil at the end.
  package func tokens(
    matching pattern: TextPattern, from position: Int, limit: Int, scanning scanned: Int
  ) -> (items: [TokenListing], next: Int?) {
    state.withLockedValue { state in
      var search = TokenSearch(pattern)
      var items: [TokenListing] = []
      var index = max(0, position)
      let count = state.tables.tokens.count
      let end = min(count, index.addingReportingOverflow(scanned).partialValue)
      while index < end, items.count < limit {
        if search.matches(DeviceTables.Index(index), in: state.tables) {
          items.append(state.listing(of: DeviceTables.Index(index)))
        }
        index += 1
      }
      return (items, index < count ? index : nil)
    }
  }
}

/// Compares tokens with a pattern, without creating strings.
private struct TokenSearch {
  private let pattern: TextPattern
  private let deviceStates: [DeviceState]
  private let appStates: [InstallationState]
  private let tokenStates: [SingleToken.State]
  private let kinds: [TokenKind]
  /// The names that were compared: millions of tokens have few different apps.
  private var names: [DeviceTables.Index: Bool] = [:]

  init(_ pattern: TextPattern) {
    self.pattern = pattern
    deviceStates = DeviceState.allCases.filter { pattern.matches($0.rawValue) }
    appStates = InstallationState.allCases.filter { pattern.matches($0.rawValue) }
    tokenStates = SingleToken.State.allCases.filter { pattern.matches($0.rawValue) }
    kinds = TokenKind.allCases.filter { pattern.matches($0.text) }
  }

  mutating func matches(_ index: DeviceTables.Index, in tables: borrowing DeviceTables) -> Bool {
    let token = tables.tokens[Int(index)]
    guard token.state != .free else { return false }
    let installation = tables.installations[Int(token.installation)]
    if token.kind.map(kinds.contains) == true || matches(name: installation.name, in: tables) { return true }
    if tokenStates.contains(state(of: token, installation)) { return true }
    if tables.withBytes(at: token.offset, count: token.count, matches(hexadecimal:)) { return true }
    guard installation.device != DeviceTables.none else { return false }
    let device = tables.devices[Int(installation.device)]
    return appStates.contains(installation.state) || deviceStates.contains(device.state)
      || tables.withBytes(at: device.idOffset, count: device.idCount, pattern.matches)
  }

  private mutating func matches(name: DeviceTables.Index, in tables: borrowing DeviceTables) -> Bool {
    if let known = names[name] { return known }
    let matches = tables.name(name).map(pattern.matches) ?? false
    names[name] = matches
    return matches
  }

  private func state(of token: DeviceTables.Token, _ installation: DeviceTables.Installation) -> SingleToken.State {
    switch token.state {
    case .expired: .expired
    case .unregistered: .unregistered
    case .free, .active: installation.removalNoticedAt == nil ? .online : .unregistered
    }
  }

  /// Returns whether bytes match as hexadecimal digits.
  private func matches(hexadecimal bytes: UnsafeRawBufferPointer) -> Bool {
    withUnsafeTemporaryAllocation(byteCount: 2 * bytes.count, alignment: 1) { digits in
      for (index, byte) in bytes.enumerated() {
        digits[2 * index] = Self.digit(byte >> 4)
        digits[2 * index + 1] = Self.digit(byte & 15)
      }
      return pattern.matches(UnsafeRawBufferPointer(digits))
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}

internal import APNSMockNotation

internal import APNSMockRules
internal import APNSMockHTTPMessage

/// The registered devices, their apps and tokens in arrays of small entries that refer to each other by index, so that
/// a million devices need little memory.
///
/// A value: fixtures are loaded into a copy, so that nothing of an invalid file remains. Entries of removed devices and
/// tokens are used again.
struct DeviceTables: Sendable {
  /// An index into one of the arrays.
  typealias Index = UInt32

  /// The index that means none.
  static let none = Index.max

  struct Token: Sendable {
    enum State: UInt8 {
      case free, active, expired, unregistered
    }

    /// The token's bytes in `bytes`.
    var offset: UInt32
    /// The installation that the token belongs to.
    var installation: Index
    /// The next token of the installation.
    var next: Index
    var count: UInt8
    /// What the token was registered for; nil for everything.
    var kind: TokenKind?
    var state: State
    /// Whether the state is what upstream answered.
    var isFromUpstream = false
    /// When the state began, in milliseconds since 1970 by the server's clock.
    var since: ServerTime
  }

  /// An app on a device. Tokens that were registered alone have one of their own, without a device.
  struct Installation: Sendable {
    /// The device; `none` for a token that was registered alone.
    var device: Index
    /// The next installation of the device.
    var next: Index
    /// The first of its tokens.
    var firstToken: Index
    /// The bundle id, or the exact topic of a token that was registered alone, in `names`; `none` for any topic.
    var name: Index
    /// The environment; nil for both.
    var environment: PushEnvironment?
    var state: InstallationState
    /// When APNs detected that the app was removed, in milliseconds since 1970; nil if it has not.
    var removalNoticedAt: ServerTime?
  }

  struct Device: Sendable {
    /// The id in `bytes`.
    var idOffset: UInt32
    var idCount: UInt8
    var state: DeviceState
    var isFree = false
    var firstInstallation: Index
  }

  private(set) var tokens: [Token] = []
  private(set) var installations: [Installation] = []
  private(set) var devices: [Device] = []
  /// Device tokens as bytes, and ids of devices.
  private var bytes: [UInt8] = []
  private var names: [String] = []
  private var nameIndices: [String: Index] = [:]
  private var tokenIndex = HashIndex()
  private var deviceIndex = HashIndex()
  private var freeTokens: [UInt8: [Index]] = [:]
  private var freeInstallations: [Index] = []
  private var freeDevices: [UInt8: [Index]] = [:]
  /// The Live Activities about which more is known than their tokens, by their tokens.
  private(set) var activities: [Index: Activity] = [:]
  /// The number of changes of `activities` alone.
  private(set) var activityChanges = 0

  /// The number of devices with an id.
  private(set) var deviceCount = 0
  /// The number of tokens that belong to no device.
  private(set) var singleTokenCount = 0
  /// The number of tokens.
  private(set) var tokenCount = 0

  // MARK: - Lookup

  /// Returns the token with these hexadecimal digits of either case; nil if it is not registered.
  func token(_ digits: UnsafeRawBufferPointer) -> Index? {
    tokenIndex.find(PushKey(deviceToken: digits).number) { isToken($0, digits) }
  }

  private func isToken(_ index: Index, _ digits: UnsafeRawBufferPointer) -> Bool {
    let token = tokens[Int(index)]
    let range = Int(token.offset)..<Int(token.offset) + Int(token.count)
    return bytes.withUnsafeBytes { digits.encodeHexadecimally($0.part(range)) }
  }

  /// Returns the device with this id; nil if there is none.
  func device(_ id: String) -> Index? {
    deviceIndex.find(Self.hash(of: id)) { index in
      let device = devices[Int(index)]
      return bytes[Int(device.idOffset)..<Int(device.idOffset) + Int(device.idCount)].elementsEqual(id.utf8)
    }
  }

  private static func hash(of id: String) -> UInt64 { PushKey(deviceToken: id).number }

  /// Returns the indices of a device's installations.
  func installations(of device: Index) -> some Sequence<Index> {
    sequence(first: devices[Int(device)].firstInstallation) { installations[Int($0)].next }.prefix { $0 != Self.none }
  }

  /// Returns the indices of an installation's tokens.
  func tokens(of installation: Index) -> some Sequence<Index> {
    sequence(first: installations[Int(installation)].firstToken) { tokens[Int($0)].next }.prefix { $0 != Self.none }
  }

  /// Returns the token's text, in lower case.
  func text(ofToken index: Index) -> String {
    let token = tokens[Int(index)]
    return Hexadecimal.text(bytes[Int(token.offset)..<Int(token.offset) + Int(token.count)])
  }

  /// Calls `body` with stored bytes of a token or an id.
  func withBytes<Result>(
    at offset: UInt32, count: UInt8, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    bytes.withUnsafeBytes { body($0.part(Int(offset)..<Int(offset) + Int(count))) }
  }

  /// Returns the id of a device.
  func id(of index: Index) -> String {
    let device = devices[Int(index)]
    return String(decoding: bytes[Int(device.idOffset)..<Int(device.idOffset) + Int(device.idCount)], as: UTF8.self)
  }

  /// Returns a bundle id or topic; nil for `none`.
  func name(_ index: Index) -> String? { index == Self.none ? nil : names[Int(index)] }

  /// The bundle ids and topics, also those that are no longer in use.
  var allNames: [String] { names }

  // MARK: - Changes

  /// Adds a device without apps. The id must not be in use.
  mutating func addDevice(_ id: String, state: DeviceState) -> Index {
    let count = UInt8(id.utf8.count)
    let reused = freeDevices[count]?.popLast()
    let offset = place(id.utf8, over: reused.map { devices[Int($0)].idOffset }, count: Int(count))
    let device = Device(idOffset: offset, idCount: count, state: state, firstInstallation: Self.none)
    let index = reused ?? Index(devices.count)
    if reused == nil { devices.append(device) } else { devices[Int(index)] = device }
    deviceIndex.insert(Self.hash(of: id), index)
    deviceCount += 1
    return index
  }

  /// Adds an app to a device, or, with the device `none`, a topic for a token that is registered alone.
  mutating func addInstallation(
    _ name: String?, environment: PushEnvironment?, state: InstallationState, to device: Index
  ) -> Index {
    let installation = Installation(
      device: device, next: device == Self.none ? Self.none : devices[Int(device)].firstInstallation,
      firstToken: Self.none, name: name.map { intern($0) } ?? Self.none, environment: environment, state: state)
    let index = freeInstallations.popLast() ?? Index(installations.count)
    if Int(index) == installations.count {
      installations.append(installation)
    } else {
      installations[Int(index)] = installation
    }
    if device != Self.none {
      devices[Int(device)].firstInstallation = index
    } else if state != .removed {
      singleTokenCount += 1
    }
    return index
  }

  /// Adds a token to an installation. The token must be well formed and not registered.
  mutating func addToken(
    _ text: String, kind: TokenKind?, state: Token.State, isFromUpstream: Bool = false, since: ServerTime,
    to installation: Index
  ) {
    text.withBytes { digits in
      let count = UInt8(digits.count / 2)
      let reused = freeTokens[count]?.popLast()
      let values = (0..<Int(count)).lazy.map { position in
        (Hexadecimal.value(of: digits[2 * position]) ?? 0) << 4 | (Hexadecimal.value(of: digits[2 * position + 1]) ?? 0)
      }
      let offset = place(values, over: reused.map { tokens[Int($0)].offset }, count: Int(count))
      let token = Token(
        offset: offset, installation: installation, next: installations[Int(installation)].firstToken, count: count,
        kind: kind, state: state, isFromUpstream: isFromUpstream, since: since)
      let index = reused ?? Index(tokens.count)
      if reused == nil { tokens.append(token) } else { tokens[Int(index)] = token }
      installations[Int(installation)].firstToken = index
      tokenIndex.insert(PushKey(deviceToken: digits).number, index)
    }
    tokenCount += 1
  }

  mutating func setState(of device: Index, _ state: DeviceState) { devices[Int(device)].state = state }

  mutating func setState(ofInstallation index: Index, _ state: InstallationState) {
    installations[Int(index)].state = state
    installations[Int(index)].removalNoticedAt = nil
  }

  mutating func markRemovalDetected(of installation: Index, at time: Int64) {
    installations[Int(installation)].removalNoticedAt = time
  }

  mutating func setState(
    ofToken index: Index, _ state: Token.State, isFromUpstream: Bool = false, since: ServerTime
  ) {
    tokens[Int(index)].state = state
    tokens[Int(index)].isFromUpstream = isFromUpstream
    tokens[Int(index)].since = since
  }

  /// Returns the Live Activity with a token.
  func activity(of token: Index) -> Activity { activities[token] ?? Activity() }

  mutating func setActivity(of token: Index, _ activity: Activity?) {
    activities[token] = activity
    activityChanges += 1
  }

  /// Takes over what is known about Live Activities from other tables, for the tokens that are the same in both.
  mutating func takeActivities(from other: DeviceTables) {
    activities = other.activities.filter { token, _ in
      tokens.indices.contains(Int(token)) && tokens[Int(token)].state != .free
        && text(ofToken: token) == other.text(ofToken: token)
    }
    activityChanges = other.activityChanges
  }

  /// Moves the tokens of an installation to an installation without a device that is removed, so that they stay known
  /// after the app was installed again.
  mutating func detachTokens(of installation: Index) {
    guard installations[Int(installation)].firstToken != Self.none else { return }
    var former = installations[Int(installation)]
    former.next = Self.none
    former.device = Self.none
    let index = freeInstallations.popLast() ?? Index(installations.count)
    if Int(index) == installations.count { installations.append(former) } else { installations[Int(index)] = former }
    for token in Array(tokens(of: index)) { tokens[Int(token)].installation = index }
    installations[Int(installation)].firstToken = Self.none
  }

  /// Removes a token; a token that was registered alone with its installation.
  mutating func removeToken(_ index: Index) {
    let installation = tokens[Int(index)].installation
    if installations[Int(installation)].firstToken == index {
      installations[Int(installation)].firstToken = tokens[Int(index)].next
    } else if let previous = tokens(of: installation).first(where: { tokens[Int($0)].next == index }) {
      tokens[Int(previous)].next = tokens[Int(index)].next
    }
    freeToken(index)
    let rest = installations[Int(installation)]
    if rest.device == Self.none, rest.firstToken == Self.none {
      if rest.state != .removed { singleTokenCount -= 1 }
      freeInstallations.append(installation)
    }
  }

  /// Removes a device with its apps and tokens.
  mutating func removeDevice(_ index: Index) {
    for installation in Array(installations(of: index)) {
      for token in Array(tokens(of: installation)) { freeToken(token) }
      installations[Int(installation)].firstToken = Self.none
      installations[Int(installation)].device = Self.none
      freeInstallations.append(installation)
    }
    deviceIndex.remove(Self.hash(of: id(of: index)), index)
    freeDevices[devices[Int(index)].idCount, default: []].append(index)
    devices[Int(index)].isFree = true
    deviceCount -= 1
  }

  private mutating func freeToken(_ index: Index) {
    tokenIndex.remove(PushKey(deviceToken: text(ofToken: index)).number, index)
    tokens[Int(index)].state = .free
    activities[index] = nil
    freeTokens[tokens[Int(index)].count, default: []].append(index)
    tokenCount -= 1
  }

  /// Stores bytes over those of a removed entry, or else at the end, and returns their offset.
  private mutating func place(_ values: some Collection<UInt8>, over former: UInt32?, count: Int) -> UInt32 {
    guard let former else {
      bytes.append(contentsOf: values)
      return UInt32(bytes.count - count)
    }
    bytes.replaceSubrange(Int(former)..<Int(former) + count, with: values)
    return former
  }

  private mutating func intern(_ name: String) -> Index {
    if let index = nameIndices[name] { return index }
    let index = Index(names.count)
    names.append(name)
    nameIndices[name] = index
    return index
  }
}

/// A hash table with open addressing that maps hashes to indices of an array, eight bytes for each slot.
struct HashIndex: Sendable {
  /// The hash's lower half, and one more than the index. 0 is an empty slot, `removed` one that was in use.
  private var slots = [UInt64](repeating: 0, count: 16)
  private var used = 0
  private var count = 0

  private static let removed = UInt64(UInt32.max)

  /// Returns the index with this hash for which `matches` returns true; nil if there is none.
  func find(_ hash: UInt64, _ matches: (UInt32) -> Bool) -> UInt32? {
    let half = UInt32(truncatingIfNeeded: hash)
    return slots.withUnsafeBufferPointer { slots in
      let mask = slots.count - 1
      var position = Int(half) & mask
      while slots[position] != 0 {
        let slot = slots[position]
        if slot != Self.removed, UInt32(truncatingIfNeeded: slot >> 32) == half {
          let index = UInt32(truncatingIfNeeded: slot) - 1
          if matches(index) { return index }
        }
        position = (position + 1) & mask
      }
      return nil
    }
  }

  /// Adds an index, which must be less than `UInt32.max - 1`.
  mutating func insert(_ hash: UInt64, _ index: UInt32) {
    if (used + 1) * 4 > slots.count * 3 { rebuild(capacity: count * 2 + 16) }
    let half = UInt32(truncatingIfNeeded: hash)
    add(UInt64(half) << 32 | UInt64(index + 1))
    used += 1
    count += 1
  }

  /// Removes an index.
  mutating func remove(_ hash: UInt64, _ index: UInt32) {
    let half = UInt32(truncatingIfNeeded: hash)
    let wanted = UInt64(half) << 32 | UInt64(index + 1)
    let mask = slots.count - 1
    var position = Int(half) & mask
    while slots[position] != 0 {
      if slots[position] == wanted {
        slots[position] = Self.removed
        count -= 1
        return
      }
      position = (position + 1) & mask
    }
  }

  private mutating func rebuild(capacity: Int) {
    var size = 16
    while size * 3 < capacity * 4 { size *= 2 }
    let former = slots
    slots = [UInt64](repeating: 0, count: size)
    for slot in former where slot != 0 && slot != Self.removed { add(slot) }
    used = count
  }

  private mutating func add(_ slot: UInt64) {
    let mask = slots.count - 1
    var position = Int(slot >> 32) & mask
    while slots[position] != 0 { position = (position + 1) & mask }
    slots[position] = slot
  }
}

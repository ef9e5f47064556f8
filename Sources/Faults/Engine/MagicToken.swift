package import APNSMockFaultModel
package import APNSMockRules
package import APNSMockHTTPMessage
internal import APNSMockNotation

/// A device token that selects the outcome of pushes to it. Of its 64 hexadecimal digits, the first 16 are a marker,
/// the next four a code and the next four an argument; the remaining 40 are free.
package struct MagicToken: Sendable, Equatable {
  /// An outcome; the raw value is the code's digits.
  package enum Code: String, CaseIterable, Sendable {
    case badDeviceToken = "4000"
    case deviceTokenNotForTopic = "4001"
    case topicDisallowed = "4002"
    case expiredProviderToken = "4030"
    case invalidProviderToken = "4031"
    case unregistered = "4100"
    case expiredToken = "4101"
    case payloadTooLarge = "4130"
    case tooManyRequests = "4290"
    case tooManyProviderTokenUpdates = "4291"
    case internalServerError = "5000"
    case serviceUnavailable = "5030"
    case shutdown = "5031"
    case unavailableAtFirst = "0503"
    case tooManyAtFirst = "0429"
    case late = "0001"
    case noResponse = "0900"
    case reset = "0901"
    case refused = "0902"
    case disconnected = "0903"
    case responseLost = "0904"
  }

  /// The first 16 digits of every magic device token.
  package static let marker = "feedfacefeedface"

  /// The outcome.
  package let code: Code
  /// The number of hours, attempts or tenths of a second, from 0 to 9999; ignored by other codes.
  package let argument: Int

  /// Returns a token for an outcome.
  ///
  /// - Parameter argument: Clamped to 0...9999.
  package static func make(code: Code, argument: Int = 0) -> MagicToken {
    MagicToken(code: code, argument: min(max(argument, 0), 9999))
  }

  /// One token of each kind, with an example argument where the code has one, in the order of the documentation.
  package static var list: [MagicToken] {
    Code.allCases.map { make(code: $0, argument: $0.exampleArgument) }
  }

  private init(code: Code, argument: Int) {
    self.code = code
    self.argument = argument
  }

  /// Parses a device token, in either case; nil if it is not a magic device token.
  package init?(_ deviceToken: String) {
    let digits = Array(deviceToken.utf8)
    guard digits.count == 64, digits.withUnsafeBytes(Self.isMarked),
      let code = Code(rawValue: Self.text(digits[16..<20])),
      digits[20..<24].allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let argument = Int(Self.text(digits[20..<24]))
    else { return nil }
    self.init(code: code, argument: argument)
  }

  private static func text(_ digits: ArraySlice<UInt8>) -> String { String(decoding: digits, as: UTF8.self) }

  /// Returns whether the bytes of a device token, in either case, begin with the marker.
  package static func isMarked(_ deviceToken: UnsafeRawBufferPointer) -> Bool {
    guard deviceToken.count >= 16 else { return false }
    // Compares two words, because every push is checked.
    let (first, second) = markerWords
    return deviceToken.word(at: 0) | .lowercaseBits == first && deviceToken.word(at: 8) | .lowercaseBits == second
  }

  /// Returns whether the device token of a request may be a magic one.
  package static func isMarked(_ request: HTTPRequest, _ verdict: borrowing Verdict) -> Bool {
    let token = verdict.facts.deviceToken
    return request.headers.bytes.withUnsafeBytes { bytes in
      bytes.field(token).map { isMarked(UnsafeRawBufferPointer(rebasing: $0)) } ?? false
    }
  }

  private static let markerWords = Array(marker.utf8).withUnsafeBytes { ($0.word(at: 0), $0.word(at: 8)) }

  /// The device token, with zeros as its free digits.
  package var text: String {
    let digits = String(argument)
    return Self.marker + code.rawValue + String(repeating: "0", count: 4 - digits.utf8.count) + digits
      + String(repeating: "0", count: 40)
  }

  /// The name of the rule in records.
  package var rule: String { "magic-\(code.rawValue)" }

  /// A summary of the token's effect for users.
  package var summary: String {
    switch code {
    case .unregistered: "410 Unregistered, timestamp \(argument) h before now"
    case .shutdown: "503 Shutdown, then GOAWAY"
    case .unavailableAtFirst: "503 ServiceUnavailable on the first \(argument) attempts, then 200"
    case .tooManyAtFirst: "429 TooManyRequests on the first \(argument) attempts, then 200"
    case .late: "200 after \(DurationFormat.text(.milliseconds(100 * argument)))"
    case .noResponse: "never responds"
    case .reset: "RST_STREAM INTERNAL_ERROR"
    case .refused: "GOAWAY, this stream refused"
    case .disconnected: "TCP RST"
    case .responseLost: "accepted and recorded, response lost"
    default: code.reason.map { "\($0.status) \($0.text)" } ?? ""
    }
  }

  /// The number of pushes that the token affects; nil for all.
  var firstAttempts: Int? {
    switch code {
    case .unavailableAtFirst, .tooManyAtFirst: argument
    default: nil
    }
  }

  /// Returns the injection for a push.
  func injection(within limits: Profile.Limits) -> Injection {
    let action = action(within: limits)
    var next: Action?
    // The push is answered, so the GOAWAY names its stream as the last one.
    if code == .shutdown { next = .goAway(Action.GoAwayParameters(lastStream: .this)) }
    return Injection(rule: rule, action: action, followedBy: next, continues: action.name.continues ?? false)
  }

  private func action(within limits: Profile.Limits) -> Action {
    if let reason = code.reason {
      let before: Duration = code == .unregistered ? .seconds(3600 * argument) : .zero
      return .respond(
        Action.Response(status: reason.status, reason: reason.text, timestamp: .relative(.zero - before)))
    }
    switch code {
    case .late: return .delay(.fixed(min(.milliseconds(100 * argument), limits.maxDelay)))
    case .noResponse: return .hang(for: limits.maxDelay, endWith: .nothing)
    case .reset: return .resetStream(code: 2)
    case .refused: return .goAway(Action.GoAwayParameters())
    case .disconnected: return .resetConnection(afterAccepting: false)
    case .responseLost: return .loseResponse(endWith: .nothing)
    default: return .pass
    }
  }
}

extension MagicToken.Code {
  fileprivate var exampleArgument: Int {
    switch self {
    case .unregistered: 24
    case .unavailableAtFirst, .tooManyAtFirst: 2
    case .late: 10
    default: 0
    }
  }

  fileprivate var reason: Reason? {
    switch self {
    case .badDeviceToken: .badDeviceToken
    case .deviceTokenNotForTopic: .deviceTokenNotForTopic
    case .topicDisallowed: .topicDisallowed
    case .expiredProviderToken: .expiredProviderToken
    case .invalidProviderToken: .invalidProviderToken
    case .unregistered: .unregistered
    case .expiredToken: .expiredToken
    case .payloadTooLarge: .payloadTooLarge
    case .tooManyRequests, .tooManyAtFirst: .tooManyRequests
    case .tooManyProviderTokenUpdates: .tooManyProviderTokenUpdates
    case .internalServerError: .internalServerError
    case .serviceUnavailable, .unavailableAtFirst: .serviceUnavailable
    case .shutdown: .shutdown
    case .late, .noResponse, .reset, .refused, .disconnected, .responseLost: nil
    }
  }
}

extension FaultNames {
  /// The names of the rules of magic device tokens.
  package static let magicTokens: FaultNames = {
    var names = FaultNames()
    for code in MagicToken.Code.allCases { names.rules.insert(MagicToken.make(code: code).rule) }
    return names
  }()
}

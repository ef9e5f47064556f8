import APNSMockRules
import APNSMockFaultModel
import APNSMockFaults
import APNSMockHTTPMessage
import APNSMockNotation
import Testing

/// Every kind of match on every subject.
@Suite struct EngineConditionTests {
  struct Row: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var test: Condition.Test
    var holds: Bool
    var fixture: EngineFixture

    init(
      _ subject: Condition.Subject, _ match: Condition.Match, _ holds: Bool,
      _ change: (inout EngineFixture) -> Void = { _ in }
    ) {
      test = Condition.Test(subject, match)
      self.holds = holds
      fixture = EngineFixture(change)
      testDescription = "\(subject) \(match) \(holds)"
    }
  }

  /// One value for each subject, and a change that gives a push this value.
  static let texts: [(subject: Condition.Subject, value: String, change: @Sendable (inout EngineFixture) -> Void)] = [
    (.deviceToken, "ab12", { $0.deviceToken = "ab12" }), (.topic, "com.acme.shop", { _ in }),
    (.pushType, "alert", { _ in }), (.collapseID, "game-1", { $0.fields.append(("apns-collapse-id", "game-1")) }),
    (.apnsID, "12345678-90ab-cdef-1234-567890abcdef", { $0.fields.append(("apns-id", $0.id)) }),
    (.payload(pointer: "/aps/alert"), "hi", { _ in }),
    (.header(name: "x-env"), "blue", { $0.fields += [("x-env", "blue"), ("x-env", "green")] }),
    (.teamID, "MOCKTEAM01", { _ in }), (.keyID, "MOCKKEY001", { _ in }), (.client, "127.0.0.1", { _ in }),
    (.serverName, "localhost", { $0.connection.serverName = "localhost" }),
    (.certificate, "com.acme.shop", { $0.connection.certificateUID = "com.acme.shop" }),
    (.reason, "Unregistered", { $0.response = Traffic.Response(status: 410, reason: "Unregistered") }),
    (.priority, "5", { $0.fields[2].1 = "5" }), (.size, "22", { _ in }),
    (.listener, "3", { $0.connection.listener = 3 }),
    (.environment, "production", { $0.connection.environment = .production }), (.kind, "push", { _ in }),
    (.attempt, "3", { $0.attempt = 3 }), (.status, "410", { $0.response = Traffic.Response(status: 410) }),
  ]

  static let textRows = texts.flatMap { subject, value, change in
    [
      Row(subject, .equals(value), true, change), Row(subject, .equals(value + "x"), false, change),
      Row(subject, .equals(""), false, change), Row(subject, .prefix(String(value.prefix(1))), true, change),
      Row(subject, .prefix(value), true, change), Row(subject, .prefix(value + "x"), false, change),
      Row(subject, .glob(TextPattern("*" + value.suffix(1), foldsCase: false)), true, change),
      Row(subject, .glob(TextPattern("*~", foldsCase: false)), false, change),
      Row(subject, .oneOf(["something", value]), true, change), Row(subject, .oneOf(["something"]), false, change),
      Row(subject, .oneOf([]), false, change), Row(subject, .present(true), true, change),
      Row(subject, .present(false), false, change),
    ]
  }

  /// Subjects for which the push, its connection and its response have no value.
  static let absentRows =
    ([
      .collapseID, .apnsID, .payload(pointer: "/aps/badge"), .header(name: "x-env"), .serverName, .certificate, .status,
      .reason,
    ] as [Condition.Subject]).flatMap { subject in
      [
        Row(subject, .present(true), false), Row(subject, .present(false), true), Row(subject, .equals(""), false),
        Row(subject, .prefix(""), false), Row(subject, .glob(TextPattern("*", foldsCase: false)), false),
        Row(subject, .oneOf([""]), false), Row(subject, .between(above: nil, below: nil), false),
        Row(subject, .between(above: -1e9, below: 1e9), false),
      ]
    }

  static let numbers: [(subject: Condition.Subject, value: Double, change: @Sendable (inout EngineFixture) -> Void)] = [
    (.priority, 10, { _ in }), (.priority, 10, { $0.fields.remove(at: 2) }), (.size, 22, { _ in }),
    (.size, 90_000, { $0.bodySize = 90_000 }), (.tokenAge, 90, { $0.tokenAge = 90 }), (.attempt, 3, { $0.attempt = 3 }),
    (.listener, 1, { $0.connection.listener = 1 }), (.status, 503, { $0.response = Traffic.Response(status: 503) }),
    (.payload(pointer: "/n"), 2.5, { $0.body = #"{"n":2.5}"# }),
    (.payload(pointer: "/n"), 1000, { $0.body = #"{"n":1e3}"# }),
    (.header(name: "x-n"), 4, { $0.fields.append(("x-n", "4")) }),
  ]

  static let numberRows = numbers.flatMap { subject, value, change in
    [
      Row(subject, .between(above: value - 1, below: nil), true, change),
      Row(subject, .between(above: value, below: nil), false, change),
      Row(subject, .between(above: nil, below: value + 1), true, change),
      Row(subject, .between(above: nil, below: value), false, change),
      Row(subject, .between(above: value - 1, below: value + 1), true, change),
      Row(subject, .between(above: value, below: value + 1), false, change),
      Row(subject, .between(above: .nan, below: nil), false, change), Row(subject, .present(true), true, change),
    ]
  }

  static let oddRows = [
    // Case is ignored only where it has no meaning on the wire.
    Row(.deviceToken, .equals(EngineFixture.deviceToken.uppercased()), true),
    Row(.deviceToken, .equals(EngineFixture.deviceToken), true) { $0.deviceToken = $0.deviceToken.uppercased() },
    Row(.deviceToken, .prefix("AB"), true), Row(.deviceToken, .oneOf([EngineFixture.deviceToken.uppercased()]), true),
    Row(.deviceToken, .glob(TextPattern("AB*", foldsCase: true)), true),
    Row(.serverName, .equals("LocalHost"), true) { $0.connection.serverName = "localHOST" },
    Row(.apnsID, .equals("12345678-90AB-cdef-1234-567890abcdef"), true) {
      $0.fields.append(("apns-id", $0.id.uppercased()))
    },
    Row(.topic, .equals("com.acme.Shop"), false), Row(.pushType, .equals("Alert"), false),
    Row(.keyID, .equals("mockkey001"), false),
    // The topic of the certificate, if there is no header.
    Row(.topic, .equals("com.acme.cert"), true) {
      $0.certificate = .of("com.acme.cert")
      $0.fields.removeFirst()
    },
    Row(.topic, .equals("com.acme.cert"), false) { $0.certificate = .of("com.acme.cert") },
    Row(.tokenAge, .present(false), true) { $0.certificate = .of("com.acme.shop") },
    Row(.teamID, .present(false), true) { $0.certificate = .of("com.acme.shop") },
    Row(.tokenAge, .between(above: nil, below: 0), true) { $0.tokenAge = -60 },
    // Different written forms of numbers.
    Row(.priority, .equals("7"), true) { $0.fields[2].1 = "7" }, Row(.priority, .equals("10"), true),
    Row(.priority, .between(above: nil, below: 10), true) { $0.fields[2].1 = "7" },
    Row(.header(name: "x-n"), .between(above: 0, below: nil), false) { $0.fields.append(("x-n", "inf")) },
    Row(.header(name: "x-n"), .between(above: 0, below: nil), false) { $0.fields.append(("x-n", "many")) },
    Row(.header(name: ":method"), .equals("POST"), true),
    Row(.collapseID, .between(above: 0, below: nil), false) { $0.fields.append(("apns-collapse-id", "5")) },
  ]

  @Test(arguments: textRows + absentRows + numberRows + oddRows)
  func conditionMatches(_ row: Row) {
    let stage = Rule.Stage.beforeValidation
    let injectionPoint: InjectionPoint = row.fixture.response == nil ? .request : .response
    let rule = Rule(
      name: "rule", injectionPoint: injectionPoint, condition: Condition([row.test]),
      action: .delay(.fixed(.seconds(1))), stage: stage)
    #expect(FaultPlan([rule]).fires(row.fixture, at: injectionPoint) == row.holds)
  }

  static let isShop = Condition.Test(.topic, .equals("com.acme.shop"))
  static let isOther = Condition.Test(.topic, .equals("com.acme.other"))
  static let isAlert = Condition.Test(.pushType, .equals("alert"))

  @Test(arguments: [
    (Condition(), true), (Condition([isShop, isAlert]), true), (Condition([isShop, isOther]), false),
    (Condition([isOther, isShop]), false), (Condition(exceptions: [Condition([isShop])]), false),
    (Condition(exceptions: [Condition([isOther])]), true),
    (Condition(exceptions: [Condition([isShop, isOther])]), true),
    (Condition(exceptions: [Condition([isOther]), Condition([isAlert])]), false),
    (Condition([isShop], exceptions: [Condition([isOther])]), true),
    (Condition([isOther], exceptions: [Condition([isOther])]), false),
    (Condition(exceptions: [Condition(exceptions: [Condition([isShop])])]), true),
    (Condition(exceptions: [Condition()]), false),
  ])
  func conditionsAreCombined(condition: Condition, holds: Bool) {
    #expect(FaultPlan([Rule(name: "rule", condition: condition, action: .unavailable)]).fires() == holds)
  }

  /// Before there is a push, only the subjects of the connection have values.
  @Test(
    arguments: [
      (.client, .equals("127.0.0.1"), true), (.listener, .equals("0"), true), (.serverName, .present(true), false),
      (.topic, .present(true), false), (.deviceToken, .present(false), true), (.priority, .present(false), true),
      (.size, .present(false), true), (.attempt, .present(false), true), (.payload(pointer: ""), .present(false), true),
      (.header(name: "a"), .present(false), true), (.tokenAge, .present(false), true),
    ] as [(Condition.Subject, Condition.Match, Bool)])
  func connectionConditionIgnoresPushes(subject: Condition.Subject, match: Condition.Match, holds: Bool) {
    let rule = Rule(
      name: "rule", injectionPoint: .accept, condition: Condition([Condition.Test(subject, match)]), action: .refuse)
    #expect(FaultPlan([rule]).fires(at: .accept) == holds)
  }
}

extension EngineFixture {
  fileprivate var id: String { "12345678-90ab-cdef-1234-567890abcdef" }
}

extension ProviderCertificate {
  fileprivate static func of(_ topic: String) -> ProviderCertificate {
    ProviderCertificate(
      subjectUID: topic, topics: [topic], development: true, production: true, commonName: nil, fingerprint: "00")
  }
}

import Foundation
import MockAPNS
import Testing

/// Runs the conformance vectors of all client libraries that need no HTTP API, see Clients/Conformance/README.md.
@Suite struct ConformanceTests {
  @Test(arguments: try Vector.all()) func serverConforms(_ vector: Vector) async throws {
    var configuration = MockServer.Configuration.ephemeral()
    configuration.seed = 7
    try configuration.useProfile(vector.profile)
    try await MockServer.withServer(configuration) { server in
      for device in vector.unregistered { try server.unregister(device: device) }
      for push in vector.pushes {
        try await server.push(to: push.deviceToken, headers: push.headers, alert: push.alert)
      }
      try await check(vector, on: server)
    }
  }

  private func check(_ vector: Vector, on server: MockServer) async throws {
    do {
      let result = try await vector.call(on: server)
      #expect(vector.error == nil, "The call succeeded.")
      #expect(Vector.withoutTimes(result) == vector.result)
    } catch let error as MockServerError {
      #expect(Vector.withoutTimes(error.description) == vector.error)
      #expect(error.kind == .timedOut || error.kind == .verificationFailed)
    }
  }

  @Test func unknownCallNamesCallAndClient() async throws {
    let error = await #expect(throws: Vector.UnknownCall.self) {
      try await MockServer.withServer { server in
        _ = try await Vector(name: "", json: #"{"call": "subscribe"}"#).call(on: server)
      }
    }
    #expect(error?.description == "the Swift client has no call \"subscribe\"")
  }
}

/// A conformance vector.
struct Vector: Sendable, CustomTestStringConvertible {
  let name: String
  /// The vector as JSON, because its parsed form is not sendable.
  let json: String

  /// A call that the Swift library lacks.
  struct UnknownCall: Error, CustomStringConvertible {
    let call: String
    var description: String { "the Swift client has no call \"\(call)\"" }
  }

  /// A push that arrives before the call.
  struct Push {
    let deviceToken: String
    let headers: [(String, String)]
    let alert: String
  }

  var testDescription: String { name }

  /// Returns the vectors of `inbox.json`.
  static func all() throws -> [Vector] {
    let file = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Clients/Conformance/inbox.json")
    let vectors = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [[String: Any]] ?? []
    return try vectors.map { Vector(name: $0["name"] as? String ?? "", json: try text($0)) }
  }

  private var members: [String: Any] {
    (try? JSONSerialization.jsonObject(with: Data(json.utf8))) as? [String: Any] ?? [:]
  }

  private var given: [String: Any] { members["given"] as? [String: Any] ?? [:] }

  /// The fault profile.
  var profile: String { given["profile"] as? String ?? "healthy" }

  /// The device tokens that are unregistered before the pushes.
  var unregistered: [String] { given["unregistered"] as? [String] ?? [] }

  var pushes: [Push] {
    (given["pushes"] as? [[String: Any]] ?? []).map { push in
      Push(
        deviceToken: push["device_token"] as? String ?? "",
        headers: (push["headers"] as? [String: String] ?? [:]).map { ($0.key, $0.value) },
        alert: (push["aps"] as? [String: String])?["alert"] ?? "Hello")
    }
  }

  /// The text of the error; nil if the call succeeds.
  var error: String? { (members["error"] as? [String: Any])?["text"] as? String }

  /// The result of the call as text; nil if it has none.
  var result: String? {
    switch members["result"] {
    case nil: nil
    case let text as String: text
    case let value?: try? Self.text(value)
    }
  }

  /// Makes the call and returns its result in the form of `result`.
  ///
  /// - Throws: `MockServerError`; `UnknownCall`.
  func call(on server: MockServer) async throws -> String? {
    let call = members["call"] as? String ?? ""
    let arguments = members["arguments"] as? [String: Any] ?? [:]
    let query = arguments["query"] as? String ?? ""
    switch (call, arguments["count"] as? [String: Int]) {
    case ("pushes", _): return try Self.text(server.pushes(matching: query).map(\.seq))
    case ("wait", let count?):
      guard let count = count["at_least"] else { throw UnknownCall(call: "wait with an exact count") }
      let timeout = Duration.milliseconds(arguments["timeout_ms"] as? Int ?? 10_000)
      return try await Self.text(server.wait(for: count, matching: query, timeout: timeout).map(\.seq))
    case ("verify", _): try await server.verify(Self.text(arguments["document"] ?? [:]))
    case ("assert_nothing_lost", _): try await server.assertNothingLost()
    case ("findings", _): return try Self.text(server.findings().map(\.name))
    case ("check", _):
      let names = arguments["fail_on_findings"] as? [String] ?? []
      let isAny = arguments["fail_on_findings"] as? Bool == true
      try server.check(
        failOnFindings: isAny ? true : FailingFindings(names),
        failOnRejected: arguments["fail_on_rejected"] as? Bool ?? false)
    case ("report", _): return server.report()
    default: throw UnknownCall(call: call)
    }
    return nil
  }

  private static func text(_ value: Any) throws -> String {
    String(decoding: try JSONSerialization.data(withJSONObject: value), as: UTF8.self)
  }

  /// Replaces what differs between two runs of the same vector: times, and ids that the server generates.
  static func withoutTimes(_ text: String?) -> String? {
    text?.replacing(#/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z/#, with: "2026-01-01T00:00:00Z")
      .replacing(#/\d\d:\d\d:\d\d\.\d{3}/#, with: "00:00:00.000")
      .replacing(#/\d+(\.\d+)?m?s earlier/#, with: "1ms earlier")
      .replacing(#/[0-9A-F]{8}(-[0-9A-F]{4}){3}-[0-9A-F]{12}/#, with: "00000000-0000-0000-0000-000000000000")
  }
}

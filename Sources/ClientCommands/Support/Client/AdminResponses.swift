import APNSMockFaults
import MockAPNS
import APNSMockNotation

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The response of `GET /status`, with the members that commands use.
struct ServerStatus: Decodable {
  var environment: String
  var addresses: Addresses
  /// Nil for `view`.
  var ca: Authority?

  struct Addresses: Decodable {
    var apns: [PortFile.Address]
    /// Nil for a server of an older version.
    var apnsPlain: [PortFile.Address]?
    var proxy: PortFile.Address?
    /// Nil for a server of an older version.
    var manage: [PortFile.Address]?
  }

  struct Authority: Decodable {
    var path: String
    var fingerprint: String
  }

  /// The listeners for providers.
  var apns: [MockServer.Endpoint] { addresses.apns.map(\.endpoint.reachable) }
}

/// The response of `GET /clock`.
struct ClockState: Decodable {
  var mode: String
  var now: String
  /// How far the clock is ahead of the machine's, in milliseconds.
  var offsetMs: Int
  /// Whether provider tokens that are signed now are expired by this clock.
  var rejectsNewTokens: Bool

  /// The time in milliseconds since 1970.
  var milliseconds: Int64? { TimestampFormat.milliseconds(now) }
}

/// The response of `GET /keys`.
struct TrustedKeysPage: Decodable {
  var items: [Key]

  struct Key: Decodable, Sendable, Equatable {
    var keyId: String
    var teamId: String
    var environment: String?
    var topics: [String]?
    /// Nil also for a server of an older version.
    var teamTopics: [String]?
    var relatedKeyId: String?
  }
}

/// An error response of the admin API (RFC 9457), with the members that commands show.
struct Problem: Decodable {
  /// `apns-mock:` and the kind of the problem.
  var type: String?
  var title: String?
  var detail: String?
  var hint: String?
  /// The problems of a fault profile or rule.
  var problems: [ProfileProblem]?
}

extension ProfileProblem {
  /// Returns the problem with another file name; nil keeps the name.
  fileprivate func called(_ name: String?) -> ProfileProblem {
    var problem = self
    if let name { problem.file = name }
    return problem
  }
}

extension JSONDecoder {
  /// A decoder of the admin API's JSON, whose members are in snake case.
  static var adminAPI: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
  }
}

extension AdminClient.Response {
  /// The elements of the array `items`, byte for byte.
  var items: [ArraySlice<UInt8>] { JSONLayout.elements(of: "items", in: body) }

  /// Returns the body of a successful response.
  ///
  /// - Parameter file: The uploaded file, to replace the server's name for it in problems.
  /// - Throws: `CommandFailure` with the server's message if the status is not 2xx.
  func succeeded(about file: String? = nil) throws -> [UInt8] {
    guard !(200..<300).contains(status) else { return body }
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
    if status == 422, let problems = problem?.problems, problems.contains(where: { $0.line != nil }) {
      throw CommandFailure(.usage, lines: problems.map { $0.called(file).text() })
    }
    var message = problem?.detail ?? problem?.title ?? "the server responded with \(status)"
    // What "See problems." means is for programs only: the detail has the first one.
    if let hint = problem?.hint, hint != "See problems." { message += (message.hasSuffix("?") ? " " : ". ") + hint }
    switch status {
    case 400, 422: throw CommandFailure(.usage, message)
    case 401:
      throw CommandFailure(
        .usage,
        "\(message)\(message.hasSuffix(".") ? "" : ".") Specify the server's port file, which contains the token (--port-file), --admin-token or \(Setting.adminToken.variable)"
      )
    default: throw CommandFailure(.failed, message)
    }
  }

  /// Whether the server has cut a wait or a verification short because it stops.
  var isOfStoppingServer: Bool {
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
    return problem?.type == "apns-mock:stopping"
  }

  /// Decodes the body of a successful response.
  func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let body = try succeeded()
    do {
      return try JSONDecoder.adminAPI.decode(type, from: Data(body))
    } catch {
      throw CommandFailure(.failed, "cannot parse the server's response: is it another version of apns-mock?")
    }
  }
}

import FaultModel
import Faults

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An error response of the admin API (RFC 9457), with the members that commands show.
struct Problem: Decodable {
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

extension AdminClient.Answer {
  /// Returns the body of a successful response.
  ///
  /// - Parameter file: The uploaded file, to replace the server's name for it in problems.
  /// - Throws: `CommandFailure` with the server's message if the status is not 2xx.
  func succeeded(about file: String? = nil) throws -> [UInt8] {
    guard !(200..<300).contains(status) else { return body }
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
    if status == 422, let problems = problem?.problems, problems.contains(where: { $0.line != nil }) {
      throw CommandFailure(.usage, lines: problems.map { $0.called(file).description })
    }
    var words = problem?.detail ?? problem?.title ?? "the server responded with \(status)"
    if let hint = problem?.hint { words += ". " + hint }
    switch status {
    case 400, 422: throw CommandFailure(.usage, words)
    case 401:
      throw CommandFailure(
        .usage,
        "\(words)\(words.hasSuffix(".") ? "" : ".") Specify the server's port file, which contains the token (--port-file), --admin-token or \(Setting.adminToken.variable)"
      )
    default: throw CommandFailure(.failed, words)
    }
  }

  /// Decodes the body of a successful response.
  func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let body = try succeeded()
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch {
      throw CommandFailure(.failed, "cannot parse the server's response: is it another version of apns-mock?")
    }
  }
}

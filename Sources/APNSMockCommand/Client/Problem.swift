import Faults

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// An error of the admin API (RFC 9457), as far as a command shows it.
struct Problem: Decodable {
  var title: String?
  var detail: String?
  var hint: String?
  /// What is wrong with a fault profile or a rule.
  var problems: [ProfileProblem]?
}

extension ProfileProblem {
  /// The same, about a file by another name; nil leaves the name.
  fileprivate func called(_ name: String?) -> ProfileProblem {
    var problem = self
    if let name { problem.file = name }
    return problem
  }
}

extension AdminClient.Answer {
  /// The body, if the server did what it was asked.
  ///
  /// - Parameter file: the file that was sent, whose problems the server says by another name.
  /// - Throws: `CommandFailure` with the server's words otherwise.
  func succeeded(about file: String? = nil) throws -> [UInt8] {
    guard !(200..<300).contains(status) else { return body }
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(body))
    if status == 422, let problems = problem?.problems, problems.contains(where: { $0.line != nil }) {
      throw CommandFailure(.usage, lines: problems.map { $0.called(file).description })
    }
    var words = problem?.detail ?? problem?.title ?? "the server answered \(status)"
    if let hint = problem?.hint { words += ". " + hint }
    switch status {
    case 400, 422: throw CommandFailure(.usage, words)
    case 401:
      throw CommandFailure(
        .usage,
        "\(words)\(words.hasSuffix(".") ? "" : ".") The server's port file has the token (--port-file); or give --admin-token, or set \(Setting.adminToken.variable)"
      )
    default: throw CommandFailure(.failed, words)
    }
  }

  /// The body as a value.
  func decoded<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let body = try succeeded()
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch {
      throw CommandFailure(.failed, "the server's answer is not understood: is it another version of apns-mock?")
    }
  }
}

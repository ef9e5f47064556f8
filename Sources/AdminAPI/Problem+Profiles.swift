internal import Faults
internal import Hummingbird
internal import Notation

extension Problem {
  /// Returns the problem of an unknown profile: status 404 if the path names it, 422 if the body does.
  static func unknownProfile(_ name: String, _ library: ProfileLibrary, status: HTTPResponse.Status) -> Problem {
    let guess = Spelling.nearest(to: name, among: library.names).map { "Did you mean \($0)? " } ?? ""
    return Problem(
      status: status, detail: "unknown profile \"\(name.prefix(80))\"",
      hint: "\(guess)What there is: \(library.names.joined(separator: ", ")).")
  }

  /// Creates the problem of an invalid profile or rule, with all details in `problems`.
  ///
  /// - Parameter isAddressed: Whether the path names the profile, so that an unknown one results in 404. Otherwise
  ///   the body names it, and the result is 422.
  init(_ failure: ProfileFailure, isAddressed: Bool = false) {
    let status: HTTPResponse.Status =
      switch failure.kind {
      case .unknownName: isAddressed ? .notFound : .unprocessableContent
      case .faulty: .unprocessableContent
      case .notAllowed: .conflict
      }
    let errors = failure.problems.filter { $0.severity == .error }
    let first = errors.first ?? failure.problems.first
    let others = errors.count > 1 ? ", and \(errors.count - 1) more" : ""
    self.init(
      status: status, detail: (first?.withoutHint ?? "the profile is invalid") + others,
      hint: first?.hint.map(Self.sentence) ?? "See problems.")
    problems = failure.problems
  }

  /// Returns the hint as a sentence: hints of profile files begin in lower case because they are used within a line.
  private static func sentence(_ hint: String) -> String {
    let text = hint.prefix(1).uppercased() + hint.dropFirst()
    return text.hasSuffix("?") || text.hasSuffix(".") ? text : text + "."
  }
}

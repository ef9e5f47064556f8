internal import Faults
internal import Hummingbird
internal import Notation

extension Problem {
  /// 404 where the path names a profile that does not exist, 422 where a body does.
  static func unknownProfile(_ name: String, _ library: ProfileLibrary, status: HTTPResponse.Status) -> Problem {
    let guess = Spelling.nearest(to: name, among: library.names).map { "Did you mean \($0)? " } ?? ""
    return Problem(
      status: status, detail: "there is no profile \"\(name.prefix(80))\"",
      hint: "\(guess)What there is: \(library.names.joined(separator: ", ")).")
  }

  /// What is wrong with a profile or a rule, with all of it in `problems`.
  ///
  /// - Parameter isAddressed: whether the path names the profile, so that one that nobody knows is not found; otherwise
  ///   the body does, and is wrong.
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
      status: status, detail: (first?.withoutHint ?? "the profile cannot be used") + others,
      hint: first?.hint.map(Self.sentence) ?? "See problems.")
    problems = failure.problems
  }

  /// The hints of profile files begin small, for they stand in the middle of a line.
  private static func sentence(_ hint: String) -> String {
    let text = hint.prefix(1).uppercased() + hint.dropFirst()
    return text.hasSuffix("?") || text.hasSuffix(".") ? text : text + "."
  }
}

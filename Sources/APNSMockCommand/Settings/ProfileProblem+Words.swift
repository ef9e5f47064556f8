import Faults

extension ProfileProblem {
  /// A line for standard error. One with a place begins with it, as those of compilers do, so that editors find it; the
  /// others begin as all errors of this program do.
  ///
  /// - Parameter source: who asked for what is wrong: a flag, a variable, the line of a file.
  func words(from source: String? = nil) -> String {
    guard line == nil else { return description }
    return (severity == .error ? "error: " : "") + (source.map { "\($0): " } ?? "") + description
  }
}

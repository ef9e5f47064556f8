import Faults

extension ProfileProblem {
  /// Returns a line for standard error. It begins with the location, if known, as in compilers' messages; otherwise with
  /// `error: ` like other errors of this program.
  ///
  /// - Parameter source: The flag, variable or config file line that specified the profile.
  func words(from source: String? = nil) -> String {
    guard line == nil else { return description }
    return (severity == .error ? "error: " : "") + (source.map { "\($0): " } ?? "") + description
  }
}

import Notation

/// An error in a setting, in one line: the source, the problem and the repair.
struct SettingError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// Creates an error for an invalid value.
  ///
  /// - Parameter source: The flag, the variable, or the config file line.
  init(_ bad: BadValue, from source: String) {
    description = "\(source): \"\(bad.value)\" is invalid: expected \(bad.allowed)"
  }
}

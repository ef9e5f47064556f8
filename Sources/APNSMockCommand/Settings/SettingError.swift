import Notation

/// Something that keeps the server from being configured, in one line: where it stands, what, and how to repair it.
struct SettingError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }

  /// - Parameter source: the flag, the variable, or the line of a file.
  init(_ bad: BadValue, from source: String) {
    description = "\(source): \"\(bad.value)\" cannot be used: it takes \(bad.allowed)"
  }
}

/// A problem of a fault profile or a rule, as the server tells it.
struct ToldProblem: Decodable, CustomStringConvertible {
  var severity: String
  var file: String
  var line: Int?
  var column: Int?
  var path: String
  var message: String
  var hint: String?

  /// Whether the profile cannot run.
  var isError: Bool { severity == "error" }

  var description: String { text(file: nil) }

  /// In one line, as compilers do.
  ///
  /// - Parameter sent: the file that was sent; nil to call it as the server does.
  func text(file sent: String?) -> String {
    let place = [sent ?? file, line.map(String.init), column.map(String.init)].compactMap(\.self).joined(separator: ":")
    let kind = isError ? nil : severity
    let about = [place, kind, path].compactMap(\.self).filter { !$0.isEmpty } + [message]
    return (about.joined(separator: ": ") + (hint.map { ", \($0)" } ?? "")).onOneLine
  }
}

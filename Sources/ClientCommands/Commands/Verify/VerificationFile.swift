package import APNSMockNotation

/// A file with expectations in JSON or YAML.
package struct VerificationFile {
  /// The file's name in messages.
  package let name: String
  /// The content as YAML; nil for JSON that the YAML parser rejects.
  private let root: YAMLNode?
  /// The content as JSON.
  package let json: [UInt8]

  /// Reads a file; `-` is standard input.
  ///
  /// - Throws: `CommandFailure` with status `usage` if the content is neither JSON nor YAML.
  package init(path: String) throws {
    try self.init(try Files.contents(of: path), name: path == "-" ? "stdin" : path)
  }

  /// Parses the content of a file.
  ///
  /// - Parameter name: The file's name in messages.
  init(_ bytes: [UInt8], name: String) throws {
    self.name = name
    // The parser counts a byte order mark as a column, and JSON has none.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    do throws(YAMLError) {
      (json, root) = try YAMLNode.document(bytes)
    } catch {
      let message = error.message + (error.hint.map { ", \($0)" } ?? "")
      throw CommandFailure(.usage, "\(Self.location(error.position, in: name)): \(message)".onOneLine)
    }
  }

  private static func location(_ position: TextPosition?, in name: String) -> String {
    position.map { "\(name):\($0.line):\($0.column)" } ?? name
  }

  /// Returns the request body, with another timeout or scope if one is specified.
  func body(timeout: String?, scope: String? = nil) -> [UInt8] {
    let replaced = [("timeout", timeout), ("scope", scope)].compactMap { name, value in value.map { (name, $0) } }
    guard !replaced.isEmpty, case .object(let object) = JSONValue(json[...]) else { return json }
    return JSONWriter.object { writer in
      for (name, value) in object.entries where !replaced.contains(where: { $0.0 == name }) {
        writer.name(name)
        value.write(to: &writer)
      }
      for (name, value) in replaced { writer.member(name, value) }
    }
  }

  /// An error in the file.
  struct Mistake: Decodable {
    var pointer: String
    var message: String
    var hint: String
  }

  /// Returns a failure with one line per error of a verification.
  package func failure(_ failure: FileFailure) -> CommandFailure {
    self.failure(failure.problems.map { Mistake(pointer: $0.path, message: $0.message, hint: $0.advice) })
  }

  /// Returns a failure with one line per error, sorted by location, in the format of compilers.
  func failure(_ mistakes: [Mistake]) -> CommandFailure {
    let located = mistakes.map { mistake in (mistake, root?.position(atPointer: mistake.pointer)) }
    let sorted = located.sorted { ($0.1?.line ?? 0, $0.1?.column ?? 0) < ($1.1?.line ?? 0, $1.1?.column ?? 0) }
    let errors = sorted.map { mistake, position in
      let pointer = mistake.pointer.isEmpty ? "" : "\(mistake.pointer): "
      return "\(Self.location(position, in: name)): \(pointer)\(mistake.message). \(mistake.hint)".onOneLine
    }
    return CommandFailure(.usage, errors.joined(separator: "\n"))
  }
}

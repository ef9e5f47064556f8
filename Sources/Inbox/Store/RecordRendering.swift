internal import APNSMockRules
internal import APNSMockNotation

/// The reason why a record cannot be rendered in another format.
package struct NotRenderable: Error, Equatable {
  /// The description of the problem.
  package let message: String
}

/// Rendering of a push in formats for other tools.
extension Record {
  /// Returns a command for a POSIX shell that sends the same push, with a new provider token: that in `TOKEN`, else the
  /// output of `tokenCommand`. The signature of the recorded one is not kept.
  ///
  /// - Parameters:
  ///   - address: The server's URL, such as `https://localhost:2197`.
  ///   - authority: The path of the CA certificate to trust.
  ///   - tokenCommand: The shell command that prints a provider token.
  /// - Throws: `NotRenderable` if the body was cut.
  package func curlCommand(
    to address: String, authority: String, tokenCommand: String
  ) throws(NotRenderable) -> String {
    guard !isBodyCut else { throw NotRenderable(message: payloadProblem ?? "the body is not stored completely") }
    var arguments = ["curl", "-i", "--http2", "--cacert", authority.shellQuoted]
    let method = text(facts.method) ?? "POST"
    if method != "POST" { arguments += ["-X", method.shellQuoted] }
    for (name, value) in headers where !Self.omittedHeaders.contains(name) && !name.hasPrefix(":") {
      if name == "authorization" {
        arguments += ["-H", "\"authorization: bearer ${TOKEN:-$(\(tokenCommand))}\""]
      } else {
        // curl sends a header without a value only if it ends in a semicolon; it drops one that ends in a colon.
        arguments += ["-H", (value.isEmpty ? "\(name);" : "\(name): \(value)").shellQuoted]
      }
    }
    let path = text(facts.path) ?? ""
    // Without a leading slash the path would become part of the port.
    let url = (address + (path.hasPrefix("/") ? path : "/" + path)).shellQuoted
    let body = body
    let isText = String(validating: body, as: UTF8.self) != nil && !body.contains(0)
    if isText, !body.isEmpty { arguments += ["--data-raw", String(decoding: body, as: UTF8.self).shellQuoted] }
    if !isText { arguments += ["--data-binary", "@-"] }
    if isText, body.isEmpty, method == "POST" { arguments += ["--data-raw", "''"] }
    let command = (arguments + [url]).joined(separator: " ") + "\n"
    return isText ? command : "printf '\(Self.octal(body))' | " + command
  }

  /// Header fields that are omitted because curl adds them itself.
  private static let omittedHeaders: Set<String> = ["content-length", "host"]

  /// Returns the argument from which `printf` produces these bytes.
  private static func octal(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }.joined()
  }

  /// Returns a file for `xcrun simctl push DEVICE FILE`: the payload and the bundle ID of its app.
  ///
  /// - Parameter bundleID: The app; nil for that of the push's topic.
  /// - Throws: `NotRenderable` if the payload is not a JSON object, or if the push has no topic.
  package func simulatorFile(for bundleID: String? = nil) throws(NotRenderable) -> [UInt8] {
    if let problem = payloadProblem { throw NotRenderable(message: problem) }
    let body = body
    guard let open = body.firstIndex(where: { $0 > 0x20 }), body[open] == UInt8(ascii: "{") else {
      throw NotRenderable(message: "the payload is not a JSON object")
    }
    let key = "Simulator Target Bundle"
    if let pointer = JSONPointer("/\(key)"), withBody({ pointer.value(in: $0) }) != nil { return body }
    guard let bundle = bundleID ?? bundle else {
      throw NotRenderable(message: "the push has no topic, which would name the app")
    }
    var writer = JSONWriter()
    writer.object { $0.member(key, bundle) }
    let isEmpty = body[(open + 1)...].first { $0 > 0x20 } == UInt8(ascii: "}")
    return writer.bytes.dropLast() + (isEmpty ? [] : [UInt8(ascii: ",")]) + body[(open + 1)...]
  }

  /// The bundle ID of the app: the topic without the suffix of its push type.
  private var bundle: String? {
    withTopic { topic in
      guard let topic else { return nil }
      let suffix = PushType(suffixOf: topic)?.topicSuffix ?? ""
      return String(decoding: topic.dropLast(suffix.utf8.count), as: UTF8.self)
    }
  }
}

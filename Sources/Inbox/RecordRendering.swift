internal import APNSRules
internal import Faults
internal import HTTPMessage
internal import Notation

/// The reason why a record cannot be rendered in another format.
public struct NotRenderable: Error, Equatable {
  /// The description of the problem.
  public let message: String
}

/// Rendering of a push in formats for other tools.
extension Record {
  /// Returns a command for a POSIX shell that sends the same push. It contains `$TOKEN` in place of the provider
  /// token, whose signature is not kept.
  ///
  /// - Parameters:
  ///   - address: The server's URL, such as `https://localhost:2197`.
  ///   - authority: The path of the CA certificate to trust.
  /// - Throws: `NotRenderable` if the body was cut.
  public func curlCommand(to address: String, authority: String) throws(NotRenderable) -> String {
    guard !isBodyCut else { throw NotRenderable(message: payloadProblem ?? "the body is not stored completely") }
    var words = ["curl", "-i", "--http2", "--cacert", authority.shellQuoted]
    let method = text(facts.method) ?? "POST"
    if method != "POST" { words += ["-X", method.shellQuoted] }
    for (name, value) in fields where !Self.left.contains(name) && !name.hasPrefix(":") {
      if name == "authorization" {
        words += ["-H", #""authorization: bearer $TOKEN""#]
      } else {
        // curl sends a header without a value only if it ends in a semicolon; it drops one that ends in a colon.
        words += ["-H", (value.isEmpty ? "\(name);" : "\(name): \(value)").shellQuoted]
      }
    }
    let path = text(facts.path) ?? ""
    // Without a leading slash the path would become part of the port.
    let url = (address + (path.hasPrefix("/") ? path : "/" + path)).shellQuoted
    let body = body
    let isText = String(validating: body, as: UTF8.self) != nil && !body.contains(0)
    if isText, !body.isEmpty { words += ["--data-raw", String(decoding: body, as: UTF8.self).shellQuoted] }
    if !isText { words += ["--data-binary", "@-"] }
    if isText, body.isEmpty, method == "POST" { words += ["--data-raw", "''"] }
    let command = (words + [url]).joined(separator: " ") + "\n"
    return isText ? command : "printf '\(Self.octal(body))' | " + command
  }

  /// Headers that curl adds itself.
  private static let left: Set<String> = ["content-length", "host"]

  /// Returns the argument from which `printf` produces these bytes.
  private static func octal(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      let digits = String(byte, radix: 8)
      return "\\" + String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }.joined()
  }

  private var fields: [(name: String, value: String)] {
    withHeaders { packed in
      var fields: [(String, String)] = []
      HeaderList.forEachField(in: packed) { name, value in
        fields.append(
          (
            String(decoding: packed[name.indices], as: UTF8.self),
            String(decoding: packed[value.indices], as: UTF8.self)
          ))
      }
      return fields
    }
  }

  /// Returns a file for `xcrun simctl push DEVICE FILE`: the payload and the bundle ID of its app.
  ///
  /// - Throws: `NotRenderable` if the payload is not a JSON object, or if the push has no topic.
  public func simulatorFile() throws(NotRenderable) -> [UInt8] {
    if let problem = payloadProblem { throw NotRenderable(message: problem) }
    let body = body
    guard let open = body.firstIndex(where: { $0 > 0x20 }), body[open] == UInt8(ascii: "{") else {
      throw NotRenderable(message: "the payload is not a JSON object")
    }
    let key = "Simulator Target Bundle"
    if let pointer = JSONPointer("/\(key)"), withBody({ pointer.value(in: $0) }) != nil { return body }
    guard let bundle else { throw NotRenderable(message: "the push has no topic, which would name the app") }
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

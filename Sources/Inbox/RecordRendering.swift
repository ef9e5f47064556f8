internal import APNSRules
internal import Faults
internal import HTTPMessage
internal import Notation

/// Why a record cannot be given in another form.
public struct NotRenderable: Error, Equatable {
  /// What is wrong with it for that form.
  public let message: String
}

/// The push in forms that other tools take.
extension Record {
  /// A command for a POSIX shell that sends the same push. In place of the provider token, whose signature is not kept,
  /// it has `$TOKEN`.
  ///
  /// - Parameters:
  ///   - address: where to: `https://localhost:2197`.
  ///   - authority: the file with the CA to trust.
  /// - Throws: `NotRenderable` if the body was not kept whole.
  public func curlCommand(to address: String, authority: String) throws(NotRenderable) -> String {
    guard !isBodyCut else { throw NotRenderable(message: payloadProblem ?? "the body was not kept whole") }
    var words = ["curl", "-i", "--http2", "--cacert", authority.shellQuoted]
    let method = text(facts.method) ?? "POST"
    if method != "POST" { words += ["-X", method.shellQuoted] }
    for (name, value) in fields where !Self.left.contains(name) && !name.hasPrefix(":") {
      if name == "authorization" {
        words += ["-H", #""authorization: bearer $TOKEN""#]
      } else {
        // A field without a value ends in a semicolon; with a colon, curl would leave it out.
        words += ["-H", (value.isEmpty ? "\(name);" : "\(name): \(value)").shellQuoted]
      }
    }
    let path = text(facts.path) ?? ""
    // A path that does not begin with a slash would become a part of the port.
    let url = (address + (path.hasPrefix("/") ? path : "/" + path)).shellQuoted
    let body = body
    let isText = String(validating: body, as: UTF8.self) != nil && !body.contains(0)
    if isText, !body.isEmpty { words += ["--data-raw", String(decoding: body, as: UTF8.self).shellQuoted] }
    if !isText { words += ["--data-binary", "@-"] }
    if isText, body.isEmpty, method == "POST" { words += ["--data-raw", "''"] }
    let command = (words + [url]).joined(separator: " ") + "\n"
    return isText ? command : "printf '\(Self.octal(body))' | " + command
  }

  /// Fields that curl writes by itself.
  private static let left: Set<String> = ["content-length", "host"]

  /// What `printf` makes these bytes of.
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

  /// A file for `xcrun simctl push DEVICE FILE`: the payload, with the app it is for.
  ///
  /// - Throws: `NotRenderable` if the payload is no JSON object, or nothing says which app it is for.
  public func simulatorFile() throws(NotRenderable) -> [UInt8] {
    if let problem = payloadProblem { throw NotRenderable(message: problem) }
    let body = body
    guard let open = body.firstIndex(where: { $0 > 0x20 }), body[open] == UInt8(ascii: "{") else {
      throw NotRenderable(message: "the payload is no JSON object")
    }
    let key = "Simulator Target Bundle"
    if let pointer = JSONPointer("/\(key)"), withBody({ pointer.value(in: $0) }) != nil { return body }
    guard let bundle else { throw NotRenderable(message: "the push has no topic, which would name the app") }
    var writer = JSONWriter()
    writer.object { $0.member(key, bundle) }
    let isEmpty = body[(open + 1)...].first { $0 > 0x20 } == UInt8(ascii: "}")
    return writer.bytes.dropLast() + (isEmpty ? [] : [UInt8(ascii: ",")]) + body[(open + 1)...]
  }

  /// The app that the push is for: its topic without what the type of push adds to it.
  private var bundle: String? {
    withTopic { topic in
      guard let topic else { return nil }
      let suffix = PushType(suffixOf: topic)?.topicSuffix ?? ""
      return String(decoding: topic.dropLast(suffix.utf8.count), as: UTF8.self)
    }
  }
}

/// The result of a verification in JUnit's XML format (https://github.com/testmoapp/junitxml).
struct JUnitReport {
  let result: VerificationResult
  /// The name of the file with the expectations.
  let file: String
  /// The duration of the verification.
  let time: Duration

  /// The XML document: one test case per expectation, and the properties `seed` and `profile`.
  var xml: String {
    let parts = result.parts
    let failures = parts.count { !$0.passed }
    let errors = result.inconclusive ? 1 : 0
    let seconds = Self.seconds(time)
    let counts = "tests=\"\(parts.count + errors)\" failures=\"\(failures)\" errors=\"\(errors)\""
    var lines = [
      #"<?xml version="1.0" encoding="UTF-8"?>"#,
      "<testsuites name=\"apns-mock verify\" \(counts) time=\"\(seconds)\">",
      "  <testsuite name=\(attribute(file)) \(counts) skipped=\"0\" time=\"\(seconds)\">",
      "    <properties>",
      "      <property name=\"seed\" value=\(attribute(result.seed.map { String($0) } ?? "unknown"))/>",
      "      <property name=\"profile\" value=\(attribute(result.profile ?? "unknown"))/>",
      "    </properties>",
    ]
    for part in parts {
      lines += testCase(part.name, part.passed ? nil : ("failure", part.text))
    }
    if result.inconclusive {
      let text = "\(result.evicted) pushes were evicted before they were checked\n\(result.text)"
      lines += testCase("window complete", ("error", text))
    }
    return (lines + ["  </testsuite>", "</testsuites>", ""]).joined(separator: "\n")
  }

  private func testCase(_ name: String, _ problem: (kind: String, text: String)?) -> [String] {
    let start = "    <testcase classname=\(attribute(file)) name=\(attribute(name)) time=\"0\""
    guard let problem else { return [start + "/>"] }
    let message = problem.text.split(separator: "\n").first.map(String.init) ?? ""
    return [
      start + ">",
      "      <\(problem.kind) message=\(attribute(message)) type=\"verify\">"
        + "\(Self.escaped(problem.text))</\(problem.kind)>",
      "    </testcase>",
    ]
  }

  /// Returns an attribute value in quotation marks. Line breaks and tabs become character references, because XML
  /// parsers replace literal ones by spaces.
  private func attribute(_ text: String) -> String {
    let value = ["\n", "\t"].reduce(Self.escaped(text)) { text, space in
      text.replacing(space, with: "&#\(space.unicodeScalars.first?.value ?? 32);")
    }
    return "\"\(value)\""
  }

  /// Returns text escaped for XML 1.0. U+FFFD replaces characters that XML does not allow.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      // XML parsers replace a literal CR by a line feed.
      case "\r": escaped += "&#13;"
      case "\n", "\t", "\u{20}"..."\u{7E}", "\u{A0}"..."\u{D7FF}", "\u{E000}"..."\u{FFFD}", "\u{10000}"..."\u{10FFFF}":
        escaped.unicodeScalars.append(scalar)
      default: escaped += "\u{FFFD}"
      }
    }
  }

  /// Returns a duration in seconds, such as `1.250`.
  private static func seconds(_ duration: Duration) -> String {
    let milliseconds = duration.components.seconds * 1000 + duration.components.attoseconds / 1_000_000_000_000_000
    let rest = String(milliseconds % 1000)
    return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - rest.count) + rest
  }
}

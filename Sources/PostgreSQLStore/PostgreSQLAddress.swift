/// Where an inbox is: a database, and a schema in it.
package struct PostgreSQLAddress: Sendable, Equatable {
  /// The URL for libpq.
  let url: String
  /// The schema with the tables. Each schema is an inbox of its own.
  package private(set) var schema: String
  /// The number of records that are in memory too; nil for the default.
  package let recentRecords: Int?
  /// The URL without its password, for people.
  package let place: String

  /// The forms of a URL that `init` parses.
  package static let allowed = "postgres://USER@HOST:PORT/DATABASE"

  /// A parameter of the URL with an invalid value.
  package struct InvalidParameter: Error {
    /// The value that is allowed, with the name of the parameter.
    package let allowed: String
  }

  /// Whether a text is meant to be a URL of PostgreSQL.
  package static func isAddress(_ text: String) -> Bool {
    ["postgres://", "postgresql://"].contains(where: text.hasPrefix)
  }

  /// The pattern of the schemas of several servers, such as `load_*`; nil if the URL names one schema.
  package private(set) var pattern: String?

  /// Returns the address of one of the schemas of the pattern.
  package func with(schema: String) -> PostgreSQLAddress {
    var address = self
    (address.schema, address.pattern) = (schema, nil)
    return address
  }

  /// Parses a URL of libpq, which may have the additional parameters `schema` and `memory_records`.
  ///
  /// - Parameter allowsPattern: Whether `schema` may contain `*`, which matches any characters.
  package init(_ text: String, allowsPattern: Bool = false) throws(InvalidParameter) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var (kept, shown): ([Substring], [Substring]) = ([], [])
    var (schema, recent): (String, Int?) = ("apns_mock", nil)
    var names: Set<Substring> = []
    for parameter in parts.dropFirst().joined().split(separator: "&") {
      let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      var value = pair.count == 2 ? pair[1] : ""
      if pair[0] == "schema" { value = value.replacing("%2A", with: "*") }
      guard names.insert(pair[0]).inserted || !["schema", "memory_records"].contains(pair[0]) else {
        throw InvalidParameter(allowed: "\(pair[0]) only once")
      }
      switch pair[0] {
      case "schema" where value.contains("*") && !allowsPattern:
        throw InvalidParameter(
          allowed:
            "schema=NAME, because a server writes one schema: give each server a name of its own, such as load_1, and "
            + "read them together with apns-mock view")
      case "schema":
        guard Self.isName(value, orPattern: allowsPattern) else {
          throw InvalidParameter(
            allowed: "schema=NAME with up to 63 lower-case letters, digits and underscores, not beginning with pg_")
        }
        schema = String(value)
      case "memory_records":
        guard let number = Int(value), number > 0 else {
          throw InvalidParameter(allowed: "memory_records=N with N from 1")
        }
        recent = number
      case "password", "sslpassword": kept.append(parameter)
      default:
        kept.append(parameter)
        shown.append(parameter)
      }
    }
    guard Self.isEncoded(parts[0]), Self.isPercentEncoded(text),
      parts.dropFirst().joined().split(separator: "&").allSatisfy({ $0.contains("=") })
    else {
      throw InvalidParameter(
        allowed: "\(Self.allowed) with %25, %40, %2F and %3F instead of %, @, / and ? in names and in the password")
    }
    let start = String(parts[0])
    (self.schema, recentRecords) = (schema, recent)
    pattern = schema.contains("*") ? schema : nil
    url = start + Self.query(kept)
    place = Self.withoutPassword(start) + Self.query(shown + (schema == "apns_mock" ? [] : ["schema=\(schema)"]))
  }

  /// Returns a text that may be meant as a URL, for people: without anything before the host but its scheme, and without
  /// passwords among its parameters.
  package static func withoutSecrets(_ text: String) -> String {
    guard let colon = text.firstIndex(of: ":") else {
      // Perhaps it is the other form of libpq, `host=… password=…`.
      return text.contains("=") ? text.prefix { $0 != "=" } + "=…" : text
    }
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let hasPath = parts[0][colon...].drop { ":/".contains($0) }.contains("/")
    var (shown, parameters) = (String(parts[0]), parts.dropFirst().joined())
    // A password may contain the other delimiters, but no parameter is before the path.
    if let at = (hasPath ? parts[0] : text[...]).lastIndex(of: "@"), at > colon {
      let rest = text[at...].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
      shown = text[...colon] + "//…" + rest[0]
      parameters = rest.dropFirst().joined()
    }
    return shown
      + query(
        parameters.split(separator: "&").map { parameter in
          guard let name = parameter.split(separator: "=").first, name.hasSuffix("password") else { return parameter }
          return name + "=…"
        })
  }

  /// Whether a URL before its parameters has no unescaped delimiter in the password, a part of which libpq would take for
  /// the host and name in its message.
  private static func isEncoded(_ url: Substring) -> Bool {
    let authority = url.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
    return authority.count { $0 == "@" } <= 1 && (authority.contains("@") || !url.contains("@"))
  }

  /// Whether each `%` begins the code of a character other than NUL.
  private static func isPercentEncoded(_ text: String) -> Bool {
    text.split(separator: "%", omittingEmptySubsequences: false).dropFirst().allSatisfy { part in
      let code = part.prefix(2)
      return code.count == 2 && code.allSatisfy { $0.isASCII && $0.isHexDigit } && code != "00"
    }
  }

  private static func query(_ parameters: [Substring]) -> String {
    parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
  }

  private static func withoutPassword(_ url: String) -> String {
    let authority = url.drop { $0 != "/" }.dropFirst(2)
    guard let at = authority.lastIndex(of: "@"), let colon = authority[..<at].firstIndex(of: ":") else { return url }
    return String(url[..<colon] + url[at...])
  }

  /// Whether a text is the name of a schema that needs no quotes: lower-case letters, digits and underscores.
  static func isName(_ text: Substring, orPattern allowsPattern: Bool = false) -> Bool {
    text.utf8.count <= 63 && !text.hasPrefix("pg_") && text.utf8.first.map { !(0x30...0x39).contains($0) } ?? false
      && text.utf8.allSatisfy {
        (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x5F || allowsPattern && $0 == 0x2A
      }
  }
}

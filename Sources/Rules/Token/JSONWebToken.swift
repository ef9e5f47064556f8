internal import APNSMockNotation

/// A decoded, unverified JWT.
struct JSONWebToken {
  /// An error that describes why the text is not a JWT.
  struct Malformed: Error {
    var problem: String
  }

  private(set) var header = Header()
  private(set) var claims = Claims()
  private(set) var signature: [UInt8] = []
  /// The number of leading bytes that are signed: `header.claims`.
  private(set) var signedCount = 0
  /// Whether a part is padded or uses the standard base64 alphabet.
  private(set) var isStandardBase64 = false

  /// The maximum length in bytes that is parsed. Apple's tokens have about 200.
  static let sizeLimit = 4096

  /// Decodes the three parts of `text`.
  init(_ text: UnsafeRawBufferPointer) throws(Malformed) {
    guard text.count <= Self.sizeLimit else {
      throw Malformed(
        problem: "the provider token is \(text.count) bytes long, over \(Self.sizeLimit); one is about 200")
    }
    if let last = text.last, last <= 0x20 {
      throw Malformed(problem: "the provider token ends in white space: trim it before sending")
    }
    let parts = text.split(separator: 0x2e, maxSplits: 3, omittingEmptySubsequences: false)
    guard parts.count == 3 else {
      let found = parts.count > 3 ? "more than three parts" : parts.count == 1 ? "one part" : "two parts"
      throw Malformed(problem: "the provider token has \(found), a JWT has three (header.claims.signature)")
    }
    header = try read(parts[0], as: "header")
    claims = try read(parts[1], as: "claims")
    let signatureText = UnsafeRawBufferPointer(rebasing: parts[2])
    guard let third = Base64URL(signatureText) else {
      throw Malformed(
        problem: SignatureForm.problem(of: signatureText) ?? "the provider token's signature is not base64url")
    }
    isStandardBase64 = isStandardBase64 || third.isStandardBase64
    signature = third.bytes
    signedCount = parts[0].count + 1 + parts[1].count
  }

  /// The last of several members with the same name counts (RFC 7519 section 4).
  private mutating func read<Part: JSONWebTokenPart>(
    _ text: Slice<UnsafeRawBufferPointer>, as name: String
  ) throws(Malformed) -> Part {
    guard let decoded = Base64URL(UnsafeRawBufferPointer(rebasing: text)) else {
      throw Malformed(problem: "the provider token's \(name) is not base64url")
    }
    isStandardBase64 = isStandardBase64 || decoded.isStandardBase64
    let part = decoded.bytes.withUnsafeBytes { bytes in
      Result { () throws(JSONText.Problem) in try Part(reading: bytes) }
    }
    switch part {
    case .success(let part): return part
    case .failure(let problem):
      let verb = name == "claims" ? "are" : "is"
      throw Malformed(problem: "the provider token's \(name) \(verb) not a JSON object: \(problem)")
    }
  }
}

/// A JSON object in a JWT.
private protocol JSONWebTokenPart {
  init()
  /// Reads a known member; ignores others.
  mutating func readMember(_ name: String, _ value: inout JSONReader) throws(JSONText.Problem)
}

extension JSONWebTokenPart {
  init(reading bytes: UnsafeRawBufferPointer) throws(JSONText.Problem) {
    self.init()
    if let problem = JSONText.problem(in: bytes) { throw problem }
    var json = JSONReader(bytes)
    try json.object { name, value throws(JSONText.Problem) in try readMember(name, &value) }
  }
}

extension JSONWebToken {
  /// The part before the first dot. A `kid` that is not a string counts as absent.
  struct Header: JSONWebTokenPart {
    var algorithm: String?
    var keyID: String?
    /// Whether `kid` is a value other than a string and null.
    var hasOtherKeyID = false

    fileprivate mutating func readMember(_ name: String, _ value: inout JSONReader) throws(JSONText.Problem) {
      switch name {
      // Apple's own sample token has no alg, so nil is kept apart from an alg that is not a string.
      case "alg": algorithm = value.stringIfPresent() ?? "(not a string)"
      case "kid":
        keyID = value.stringIfPresent()
        hasOtherKeyID = keyID == nil && !value.isNull
      default: break
      }
    }
  }

  /// The part between the dots.
  struct Claims: JSONWebTokenPart {
    var issuer: String?
    /// Whether `iss` is a value other than a string and null.
    var hasOtherIssuer = false
    var issuedAt: IssuedAt?

    fileprivate mutating func readMember(_ name: String, _ value: inout JSONReader) throws(JSONText.Problem) {
      switch name {
      case "iss":
        issuer = value.stringIfPresent()
        hasOtherIssuer = issuer == nil && !value.isNull
      case "iat": issuedAt = try IssuedAt(&value)
      default: break
      }
    }
  }

  /// The forms of `iat`: a whole number of seconds is documented; libraries send others too (Protocol.md, section
  /// 3.1).
  enum IssuedAt {
    case whole(Int64)
    case fraction(Double)
    case text(String)

    /// - Returns: nil if the value is neither a number nor a string.
    fileprivate init?(_ value: inout JSONReader) throws(JSONText.Problem) {
      if let text = value.stringIfPresent() {
        self = .text(text)
        return
      }
      let written = String(decoding: try value.verbatim(), as: UTF8.self)
      guard let number = Double(written), number.isFinite else { return nil }
      // 1.7e9 is a whole number too.
      self = (Int64(written) ?? Int64(exactly: number)).map { .whole($0) } ?? .fraction(number)
    }
  }
}

extension JSONReader {
  /// Whether the next value is `null`.
  fileprivate var isNull: Bool {
    var reader = self
    return reader.readNullIfPresent()
  }

  /// Reads the next value if it is a string; otherwise returns nil and does not advance.
  fileprivate mutating func stringIfPresent() -> String? {
    let before = self
    if let text = try? string() { return text }
    self = before
    return nil
  }
}

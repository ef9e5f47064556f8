internal import APNSMockNotation

/// Provider token (Protocol.md, section 8.2): the checks of a provider token that depend on neither time nor connection. The
/// result is cached by the token's bytes (`ProviderTokenCache`), so that a JWT is verified only once per connection.
struct ProviderTokenVerification {
  var mode: RuleMode
  var keys: TrustedKeySet
  /// Whether a token of a key that is not known is accepted, because upstream verifies it.
  var acceptsUnknownKeys = false

  /// Verifies the whole value of an `authorization` header.
  func verify(_ authorization: UnsafeRawBufferPointer) -> ProviderToken {
    let identity = Self.identity(of: authorization)
    guard let start = authorization.bearerTokenStart else {
      return ProviderToken(
        nil, identity: identity,
        problem: "authorization is not of the form \"bearer <JWT>\": put the word bearer and a space before the token")
    }
    let text = authorization.part(start..<authorization.count)
    let jwt: JSONWebToken
    do throws(JSONWebToken.Malformed) { jwt = try JSONWebToken(text) } catch {
      return ProviderToken(nil, identity: identity, problem: error.problem)
    }
    let issuedAt = jwt.claims.issuedAt?.milliseconds(mode: mode)
    if acceptsUnknownKeys, issuedAt != nil, let key = unknownKey(jwt) {
      return ProviderToken(jwt, identity: identity, issuedAt: issuedAt, signature: .unknown, key: key)
    }
    do throws(Failure) {
      let (key, algorithm) = try claimedKey(jwt)
      guard issuedAt != nil else { throw Failure(problem: problemOfIssuedAt(jwt)) }
      try checkEncoding(jwt, text.part(jwt.signedCount + 1..<text.count), algorithm)
      try checkSignature(jwt, signed: text.part(0..<jwt.signedCount), key: key, algorithm: algorithm)
      return ProviderToken(jwt, identity: identity, issuedAt: issuedAt, signature: .valid, key: key)
    } catch {
      return ProviderToken(
        jwt, identity: identity, issuedAt: issuedAt, signature: error.signature, problem: error.problem)
    }
  }

  /// Parses `authorization` without verifying it, for the record of a push that was rejected earlier.
  static func unverified(_ authorization: UnsafeRawBufferPointer, mode: RuleMode) -> ProviderToken? {
    guard let start = authorization.bearerTokenStart,
      let jwt = try? JSONWebToken(authorization.part(start..<authorization.count))
    else { return nil }
    return ProviderToken(
      jwt, identity: identity(of: authorization),
      issuedAt: jwt.claims.issuedAt?.milliseconds(mode: mode == .strict ? .apple : mode))
  }

  private static func identity(of authorization: UnsafeRawBufferPointer) -> UInt64 {
    PushKey(bytes: authorization.part((authorization.bearerTokenStart ?? 0)..<authorization.count)).number
  }
}

extension ProviderTokenVerification {
  private struct Failure: Error {
    var problem: String
    var signature = ProviderToken.Signature.unchecked
  }

  /// Returns a substitute for the key that a token names; nil if that key is known, or none is named.
  private func unknownKey(_ jwt: JSONWebToken) -> TrustedKey? {
    guard let keyID = jwt.header.keyID, let teamID = jwt.claims.issuer, keys.keys[keyID] == nil,
      (try? algorithm(jwt.header.algorithm)) != nil
    else { return nil }
    return TrustedKey(keyID: keyID, teamID: teamID) { _, _, _ in false }
  }

  /// Checks `alg`, `kid` and `iss` (Protocol.md, section 3.1, documented).
  private func claimedKey(_ jwt: JSONWebToken) throws(Failure) -> (TrustedKey, SigningAlgorithm) {
    if mode != .lenient, jwt.isAppleSample {
      throw Failure(
        problem: "this is the sample token of Apple's documentation, or similar to it: it has no alg, and its iat is a "
          + "string of milliseconds. Sign a token with alg ES256 and iat in seconds, as a number")
    }
    let algorithm = try algorithm(jwt.header.algorithm)
    guard let keyID = jwt.header.keyID else {
      throw Failure(
        problem: jwt.header.hasOtherKeyID
          ? "kid in the JWT's header is a number or another value that is not a string: write the key id in quotation marks"
          : "the JWT's header has no kid: set it to the key id, ten characters")
    }
    guard let key = keys.keys[keyID] else {
      let issuerIsKey = jwt.claims.issuer.map { keys.keys[$0] != nil } ?? false
      if issuerIsKey || keys.keys.values.contains(where: { $0.teamID == keyID }) {
        throw Failure(
          problem: "iss and kid look swapped: kid \(Explanation.quoted(keyID)) must be the key id, iss the team id")
      }
      throw Failure(
        problem: "kid \(Explanation.quoted(keyID)) is not among the trusted keys "
          + "(\(Explanation.list(keys.keys.keys))): add its public key to provider.yaml")
    }
    guard let issuer = jwt.claims.issuer else {
      throw Failure(
        problem: jwt.claims.hasOtherIssuer
          ? "iss in the JWT's claims is not a string: write the team id in quotation marks (\(key.teamID))"
          : "the JWT's claims have no iss: set it to the team id (\(key.teamID))")
    }
    guard issuer == key.teamID else {
      throw Failure(
        problem: "iss \(Explanation.quoted(issuer)) is not the team of key \(key.keyID): it must be \(key.teamID)")
    }
    return (key, algorithm)
  }

  private func algorithm(_ name: String?) throws(Failure) -> SigningAlgorithm {
    switch (name, mode) {
    case ("ES256", _): return .es256
    // Inferred: pushok has signed so since 2019 (Protocol.md, section 3.1).
    case ("ES512", .apple), ("ES512", .lenient): return .es512
    // Apple's own sample token has no alg (Protocol.md, section 3.1).
    case (nil, .lenient): return .es256
    case (nil, _): throw Failure(problem: "the JWT's header has no alg: it must be ES256")
    case (let name?, _): throw Failure(problem: "alg \(Explanation.quoted(name)) is not accepted: sign with ES256")
    }
  }

  private func problemOfIssuedAt(_ jwt: JSONWebToken) -> String {
    switch jwt.claims.issuedAt {
    case nil: "the JWT's claims have no iat, or iat is not a number: set it to the UNIX time in seconds"
    case .fraction where mode == .strict, .text where mode == .strict:
      "iat is not a whole number, which rules \"strict\" require: write the UNIX time in seconds, unquoted"
    case .whole, .fraction, .text: "iat is not a number of seconds: write the UNIX time in seconds, unquoted"
    }
  }

  /// Checks the form of the signature, and in `strict` the encoding rules of RFC 7515 and 7518 that APNs was observed not
  /// to enforce.
  private func checkEncoding(
    _ jwt: JSONWebToken, _ signature: UnsafeRawBufferPointer, _ algorithm: SigningAlgorithm
  ) throws(Failure) {
    if let problem = SignatureForm.problem(of: signature, acceptsES512: algorithm == .es512) {
      throw Failure(problem: problem, signature: signature.isEmpty ? .unchecked : .invalid)
    }
    guard mode == .strict else { return }
    if jwt.isStandardBase64 {
      throw Failure(
        problem: "the JWT uses padding or the characters + and /, which rules \"strict\" refuse: use base64url")
    }
    if jwt.signature.count != 64 {
      throw Failure(
        problem: "the JWT's signature has \(jwt.signature.count) bytes, rules \"strict\" demand the 64 of r and s: "
          + "convert it from DER")
    }
  }

  private func checkSignature(
    _ jwt: JSONWebToken, signed: UnsafeRawBufferPointer, key: TrustedKey, algorithm: SigningAlgorithm
  ) throws(Failure) {
    guard jwt.signature.withUnsafeBytes({ key.verifies(algorithm, signed, $0) }) else {
      throw Failure(
        problem: "the signature does not verify with key \(key.keyID): is this .p8 the one with that key id?",
        signature: .invalid)
    }
  }
}

extension JSONWebToken {
  /// Whether the token has the form of the sample in Apple's "Sending notification requests to APNs": no `alg`, and
  /// `iat` as a string of milliseconds (Protocol.md, section 3.1, documented).
  fileprivate var isAppleSample: Bool {
    guard header.algorithm == nil, case .text(let text)? = claims.issuedAt else { return false }
    return (Int64(text) ?? 0) > 100_000_000_000
  }
}

extension JSONWebToken.IssuedAt {
  /// The time in milliseconds; nil if the mode does not accept this form.
  fileprivate func milliseconds(mode: RuleMode) -> Int64? {
    switch self {
    case .whole(let number):
      return Self.milliseconds(Double(number).clamped(to: Self.limit), mode: mode)
    case .fraction(let number):
      return mode == .strict ? nil : Self.milliseconds(number, mode: mode)
    case .text(let text):
      // Double also parses "inf" and "0x1p3", which no library sends.
      let isPlain = text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2e }
      guard mode != .strict, isPlain, let number = Double(text) else { return nil }
      return Self.milliseconds(number, mode: mode)
    }
  }

  /// Apple's own sample token has an `iat` in milliseconds (Protocol.md, section 3.1): in `lenient`, a number that would
  /// be a time after the year 5138 in seconds is interpreted as milliseconds. In the other modes it is a time in seconds
  /// that lies too far in the future.
  private static func milliseconds(_ number: Double, mode: RuleMode) -> Int64? {
    let milliseconds = (mode == .lenient && number > 1e11 ? number : number * 1000).rounded()
    return milliseconds.magnitude <= limit * 1000 ? Int64(milliseconds) : nil
  }

  /// The latest and earliest time in seconds, a hundred million years from 1970: differences do not overflow, and a whole
  /// number beyond it, such as a time in nanoseconds, is that time.
  private static let limit = 4e15
}

extension Double {
  fileprivate func clamped(to limit: Double) -> Double { Swift.min(Swift.max(self, -limit), limit) }
}

extension UnsafeRawBufferPointer {
  /// The index of the provider token in a value of `authorization`, after the scheme `bearer` (in any case) and
  /// spaces; nil for another scheme.
  var bearerTokenStart: Int? {
    guard count > 6, self[6] == 0x20 else { return nil }
    for (index, letter) in "bearer".utf8.enumerated() where self[index] | 0x20 != letter { return nil }
    return self[7...].firstIndex { $0 != 0x20 } ?? count
  }
}

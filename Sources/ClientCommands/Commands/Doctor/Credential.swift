import APNSMockRules
import MockAPNS
import HTTPTypes
import APNSMockNotation
import APNSMockTLSEngine

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The credential with which `doctor` pushes.
enum Credential: Sendable {
  /// A provider token and its decoded claims.
  case token(String, DecodedToken)
  /// A provider certificate: the paths of its chain and key, and its decoded content.
  case certificate(chain: String, key: String, PeerCertificate)

  /// Creates a credential from an existing provider token.
  ///
  /// - Throws: `CommandFailure` if it is not a JWT.
  init(jwt: String) throws {
    let jwt = jwt.trimmed
    guard let read = DecodedToken(jwt) else {
      throw CommandFailure(
        .usage,
        "--token must be a JWT (three parts separated by dots), as printed by apns-mock token provider"
      )
    }
    self = .token(jwt, read)
  }

  /// Creates a credential with a new provider token, issued by this machine's clock.
  ///
  /// - Parameter now: Milliseconds since 1970.
  init(keyAt path: String, keyID: String, teamID: String, now: Int64) throws {
    let token = ProviderTokenRequest(keyID: keyID, teamID: teamID, issuedAt: now / 1000)
    self = .token(
      try token.signed(withKeyAt: path), DecodedToken(keyID: keyID, teamID: teamID, issuedAt: Double(token.issuedAt)))
  }

  /// Creates a credential from a provider certificate.
  init(_ files: ProviderCertificateFiles) throws {
    self = .certificate(chain: files.chain, key: files.key, try files.certificate())
  }

  /// The certificate's paths; nil for a token.
  var certificateFiles: (chain: String, key: String)? {
    guard case .certificate(let chain, let key, _) = self else { return nil }
    return (chain, key)
  }

  /// The default topic of the credential.
  var topic: String {
    guard case .certificate(_, _, let certificate) = self else { return CertificateFolder.topic }
    return certificate.subjectUID ?? certificate.topics.first ?? CertificateFolder.topic
  }
}

/// The decoded claims of a provider token. The signature is not verified, which requires the server's key.
struct DecodedToken: Sendable, Equatable {
  /// The header's `kid`.
  var keyID: String?
  /// The claim `iss`.
  var teamID: String?
  /// The claim `iat` unchanged; seconds since 1970 if valid.
  var issuedAt: Double?
  /// What is wrong with the token, whatever key signed it, with the correction; nil if nothing is.
  var problem: String?

  /// Creates a token's claims.
  init(keyID: String?, teamID: String?, issuedAt: Double?) {
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
  }

  /// Decodes a JWT (RFC 7519); nil if the text is not a JWT.
  init?(_ jwt: String) {
    let parts = jwt.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(Header.self, parts[0]),
      let claims = Self.object(Claims.self, parts[1])
    else { return nil }
    self.init(keyID: header.kid?.text, teamID: claims.iss?.text, issuedAt: claims.iat?.seconds)
    problem =
      header.kid?.problem(of: "kid, the key id,") ?? claims.iss?.problem(of: "iss, the team id,")
      ?? Array(parts[2].utf8).withUnsafeBytes {
        SignatureForm.problem(of: $0, acceptsES512: header.alg?.text == "ES512")
      }
  }

  private struct Header: Decodable {
    var alg: Text?
    var kid: Text?
  }

  private struct Claims: Decodable {
    var iss: Text?
    var iat: Time?
  }

  /// A string; nil for any other value.
  private struct Text: Decodable {
    var text: String?

    init(from decoder: any Decoder) throws { text = try? decoder.singleValueContainer().decode(String.self) }

    func problem(of name: String) -> String? {
      text == nil ? "\(name) is not a string: write it in quotation marks" : nil
    }
  }

  /// A number, or a number in a string.
  private struct Time: Decodable {
    var seconds: Double?

    init(from decoder: any Decoder) throws {
      let value = try decoder.singleValueContainer()
      seconds = (try? value.decode(Double.self)) ?? Double((try? value.decode(String.self)) ?? "")
    }
  }

  private static func object<Value: Decodable>(_ type: Value.Type, _ part: Substring) -> Value? {
    Base64URL(Array(part.utf8)).flatMap { try? JSONDecoder().decode(type, from: Data($0.bytes)) }
  }
}

/// Advice for a rejected provider token, based on the token's ids and, if known, the keys the server trusts.
struct KeyAdvice {
  let token: DecodedToken
  let known: ServerDetails?

  private var keyID: String { token.keyID ?? "K" }
  private var teamID: String { token.teamID ?? "T" }
  private var command: String { "apns-mock key add FILE.p8 --key-id \(keyID) --team-id \(teamID)" }
  private var trusted: TrustedKeysPage.Key? { known?.keys.first { $0.keyId == token.keyID } }

  /// The repair for `InvalidProviderToken`: the form of the token comes first, because its key does not matter then.
  var invalid: String { token.problem ?? untrusted }

  private var untrusted: String {
    guard token.keyID != nil, token.teamID != nil else {
      return "the token lacks \(token.keyID == nil ? "kid, the key id, in its header" : "iss, the team id")"
    }
    guard let known else {
      return "the server does not trust the key \(keyID), trusts it for another team than \(teamID), or trusts another "
        + "key with this id: \(command)"
    }
    if let trusted {
      if trusted.teamId != teamID {
        return
          "the server trusts \(keyID) for the team \(trusted.teamId), but the token's iss is \(teamID): sign with iss "
          + "\(trusted.teamId), or remove the key (apns-mock key rm \(keyID)) and add it again"
      }
      return
        "the server trusts another key with the id \(keyID): sign with that private key, or apns-mock key rm \(keyID), "
        + "then \(command)"
    }
    if known.keys.contains(where: { $0.keyId == teamID || $0.teamId == keyID }) {
      return "key id and team id are swapped: kid must be \(teamID), and iss \(keyID)"
    }
    let ids = known.keys.map(\.keyId).joined(separator: ", ")
    return "the server does not trust the key \(keyID) (it trusts \(ids.isEmpty ? "none" : ids)): \(command)"
  }

  /// The repair for a key that is restricted to the other environment.
  var wrongEnvironment: String {
    let own = trusted?.environment ?? (known?.environment == "production" ? "sandbox" : nil) ?? "production"
    let mimicked = known?.environment ?? (own == "production" ? "sandbox" : "production")
    return
      "the key \(keyID) is valid only in \(own), and the server's environment is \(mimicked): start it with "
      + "--environment \(own), or sign with a key that is valid in \(mimicked) (apns-mock key ls)"
  }
}

/// The data of a server's admin API that `doctor` uses.
struct ServerDetails: Sendable {
  /// The admin listener.
  var admin: MockServer.Endpoint
  /// The listeners for providers.
  var apns: [MockServer.Endpoint]
  /// The environment of APNs.
  var environment: String
  /// The environments of the listeners, by port.
  var environments: [Int: String] = [:]
  /// How far the server's clock is ahead of this machine's, in milliseconds.
  var clockAhead: Int64
  /// Whether the server's clock is frozen.
  var isFrozen: Bool
  /// The trusted provider keys.
  var keys: [TrustedKeysPage.Key]
  /// The server's CA.
  var authority: X509Certificate?
  /// The CA that `certs rotate` switches to.
  var nextAuthority: X509Certificate?
  /// Whether a flag or port file specifies the server; otherwise it was found at the default address.
  var isNamed: Bool

  /// Returns whether the server listens on `endpoint`. Compares only ports, because the host differs for a container.
  func listens(on endpoint: MockServer.Endpoint) -> Bool { isNamed || apns.contains { $0.port == endpoint.port } }

  /// Returns the data for a client of one listener, with the environment of that listener.
  func seen(at endpoint: MockServer.Endpoint) -> ServerDetails {
    var details = self
    details.environment = environments[endpoint.port] ?? environment
    return details
  }
}

extension ServerDetails {
  /// Reads the data from the admin API.
  ///
  /// - Throws: `CommandFailure` if a request fails.
  init(_ running: ServerLocation, isNamed: Bool, timeout: Duration) async throws {
    var client = running.client
    client.timeout = timeout
    let status = try await client.request(.get, "/api/v1/status").decoded(ServerStatus.self)
    let before = ServerClock().now
    let clock = try await client.request(.get, "/api/v1/clock").decoded(ClockState.self)
    let after = ServerClock().now
    let keys = try await client.request(.get, "/api/v1/keys").decoded(TrustedKeysPage.self).items
    let pem = try await client.request(.get, "/ca.pem").body
    let next = try await client.request(.get, "/ca-next.pem").body
    let environments = status.addresses.apns.compactMap { address in address.environment.map { (address.port, $0) } }
    self.init(
      admin: client.endpoint, apns: status.apns, environment: status.environment,
      environments: Dictionary(environments, uniquingKeysWith: { first, _ in first }),
      clockAhead: (clock.milliseconds ?? after) - (before + after) / 2,
      isFrozen: clock.mode == "frozen", keys: keys,
      authority: try? X509Certificate.chain(pem: String(decoding: pem, as: UTF8.self)).first,
      nextAuthority: try? X509Certificate.chain(pem: String(decoding: next, as: UTF8.self)).first, isNamed: isNamed)
  }
}

internal import CAPNSMockOpenSSL
internal import APNSMockNotation
internal import APNSMockPlatformLibc

/// A subject alternative name of a server certificate (RFC 5280 section 4.2.1.6).
package enum CertificateName: Hashable, Sendable, CustomStringConvertible {
  /// A host name in lower case; the first label may be `*`.
  case domain(String)
  /// An IP address: 4 or 16 bytes.
  case address([UInt8])

  /// Parses an IPv4 or IPv6 address (brackets allowed), or a host name of letters, digits, hyphens and dots; nil
  /// for anything else, such as a URL or a name with a port.
  package init?(_ text: String) {
    if let bytes = Self.addressBytes(text) {
      self = .address(bytes)
      return
    }
    let name = text.lowercased()
    var labels = name.split(separator: ".", omittingEmptySubsequences: false)
    if labels.count > 1, labels.first == "*" { labels.removeFirst() }
    // A last label of only digits is a mistyped address, not a domain.
    guard name.utf8.count <= 253, labels.allSatisfy(Self.isLabel), let last = labels.last,
      !last.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    self = .domain(name)
  }

  /// The name in its usual notation.
  package var description: String {
    switch self {
    case .domain(let name): return name
    case .address(let bytes): return Self.addressText(bytes)
    }
  }

  /// The name in the syntax of OpenSSL's configuration. `init` excludes all characters with a special meaning
  /// there.
  var extensionText: String {
    switch self {
    case .domain(let name): return "DNS:" + name
    case .address: return "IP:" + description
    }
  }

  private static func isLabel(_ label: Substring) -> Bool {
    guard (1...63).contains(label.utf8.count), !label.hasPrefix("-"), !label.hasSuffix("-") else { return false }
    return label.utf8.allSatisfy { byte in
      (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-")
    }
  }

  static func addressBytes(_ text: String) -> [UInt8]? {
    var text = text
    if text.hasPrefix("["), text.hasSuffix("]") { text = String(text.dropFirst().dropLast()) }
    for (family, size) in [(AF_INET, 4), (AF_INET6, 16)] {
      var bytes = [UInt8](repeating: 0, count: size)
      if inet_pton(family, text, &bytes) == 1 { return bytes }
    }
    return nil
  }

  static func addressText(_ bytes: [UInt8]) -> String {
    var text = [CChar](repeating: 0, count: 64)
    let family = bytes.count == 4 ? AF_INET : AF_INET6
    guard bytes.count == 4 || bytes.count == 16, inet_ntop(family, bytes, &text, socklen_t(text.count)) != nil else {
      return Hexadecimal.text(bytes)
    }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

/// The properties of a provider certificate (Protocol.md, section 4.1) that a peer sent in the handshake.
package struct PeerCertificate: Sendable, Equatable {
  /// The subject's `UID`: the topic of a push without `apns-topic`.
  package let subjectUID: String?
  /// The subject's common name, such as `Apple Push Services: com.example.app`.
  package let commonName: String?
  /// The permitted topics without duplicates: those of extension 1.2.840.113635.100.6.3.6 in their order (or else
  /// `subjectUID`), then the bundle id of extension …6.3.3 and the VoIP topics of …6.3.4. Empty if it has none of
  /// these extensions. A malformed extension counts as absent.
  package let topics: [String]
  /// Whether it is valid for the development environment (extension 1.2.840.113635.100.6.3.1).
  package let development: Bool
  /// Whether it is valid for the production environment (extension 1.2.840.113635.100.6.3.2).
  package let production: Bool
  /// The SHA-256 digest of the certificate in DER, as 64 lower-case hexadecimal digits.
  package let fingerprint: String
  /// The end of the validity period, in milliseconds since 1970.
  package let notAfter: Int64

  /// Parses a certificate in DER from an untrusted source.
  ///
  /// - Throws: `TLSError` if it is not a certificate.
  package init(der: [UInt8]) throws {
    self.init(try X509Certificate(der: der))
  }

  /// Reads the properties of a parsed certificate.
  package init(_ certificate: X509Certificate) {
    subjectUID = certificate.subjectText(NID_userId)
    commonName = certificate.commonName
    topics = Self.topics(of: certificate, subjectUID: subjectUID)
    development = certificate.extensionValue(PushExtensions.development) != nil
    production = certificate.extensionValue(PushExtensions.production) != nil
    fingerprint = certificate.fingerprint
    notAfter = certificate.notAfter
  }

  private static func topics(of certificate: X509Certificate, subjectUID: String?) -> [String] {
    var topics = certificate.extensionValue(PushExtensions.topics).flatMap(PushExtensions.decodeTopics) ?? []
    let others = [PushExtensions.bundleID, PushExtensions.voipTopics].flatMap {
      certificate.extensionValue($0).map(PushExtensions.decodeTopicOrTopics) ?? []
    }
    if others.isEmpty { return topics }
    if topics.isEmpty, let subjectUID { topics = [subjectUID] }
    for topic in others where !topics.contains(topic) { topics.append(topic) }
    return topics
  }
}

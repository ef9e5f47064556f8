/// The name constraints of a certificate authority (RFC 5280 section 4.2.1.10): the domains it may issue
/// certificates for.
///
/// A client that trusts the authority of a mock server trusts it for these names only, which limits the damage of a
/// leaked key. Addresses are not constrained: BoringSSL rejects every chain with constraints on IP addresses
/// ("unsupported name constraint type").
public struct PermittedNames: Sendable, Equatable {
  /// The permitted domains; each includes its subdomains.
  public private(set) var domains: [String] = []

  /// Creates an instance without domains, which means no constraints.
  public init() {}

  /// Permits a domain and its subdomains. Ignores addresses, which are always permitted.
  public mutating func add(_ name: CertificateName) {
    guard case .domain(let name) = name else { return }
    let domain = name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
    if !domains.contains(domain) { domains.append(domain) }
  }

  /// The extension's value in the syntax of OpenSSL's configuration (x509v3_config(5)); nil without domains.
  var extensionText: String? {
    domains.isEmpty ? nil : domains.map { "permitted;DNS:" + $0 }.joined(separator: ",")
  }
}

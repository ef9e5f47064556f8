/// The name constraints of a certificate authority (RFC 5280 section 4.2.1.10): the domains it may issue certificates for.
///
/// Trusting the authority of a mock server means trusting it for these names only, so that a lost key does no harm elsewhere.
/// Addresses stay unconstrained: BoringSSL refuses every chain with constraints on IP addresses ("unsupported name
/// constraint type").
public struct PermittedNames: Sendable, Equatable {
  /// Domains; each includes all its subdomains.
  public private(set) var domains: [String] = []

  /// No domains, which means no constraints.
  public init() {}

  /// Permits a domain with all its subdomains. Ignores addresses, which are always permitted.
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

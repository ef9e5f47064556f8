/// What a certificate authority may vouch for: its name constraints (RFC 5280 section 4.2.1.10).
///
/// Whoever trusts the authority of a mock trusts it for these names only, so that a lost key does no harm elsewhere.
public struct PermittedNames: Sendable, Equatable {
  /// Domains; each stands for itself and everything below it.
  public private(set) var domains: [String] = []
  /// Networks as `address/mask`.
  private var networks: [String] = []

  /// Nothing permitted yet.
  public init() {}

  /// Permits a domain with everything below it, or this one address.
  public mutating func add(_ name: CertificateName) {
    switch name {
    case .domain(let name):
      let domain = name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
      if !domains.contains(domain) { domains.append(domain) }
    case .address(let bytes):
      add(network: bytes, prefix: bytes.count * 8)
    }
  }

  /// Permits a network, given by the bytes of its address (4 or 16) and the number of leading bits that count.
  public mutating func add(network bytes: [UInt8], prefix: Int) {
    let mask = bytes.indices.map { index in
      UInt8(truncatingIfNeeded: 0xFF00 >> min(8, max(0, prefix - index * 8)))
    }
    let network = zip(bytes, mask).map { $0 & $1 }
    let text = "\(CertificateName.addressText(network))/\(CertificateName.addressText(mask))"
    if !networks.contains(text) { networks.append(text) }
  }

  /// The networks that never leave a machine or a site: loopback and private addresses (RFC 1918, RFC 4193, RFC 4291), and
  /// link-local ones of IPv6.
  public mutating func addPrivateNetworks() {
    add(network: [127, 0, 0, 0], prefix: 8)
    add(network: [10, 0, 0, 0], prefix: 8)
    add(network: [172, 16, 0, 0], prefix: 12)
    add(network: [192, 168, 0, 0], prefix: 16)
    let zeros = [UInt8](repeating: 0, count: 14)
    add(network: zeros + [0, 1], prefix: 128)
    add(network: [0xFC, 0] + zeros, prefix: 7)
    add(network: [0xFE, 0x80] + zeros, prefix: 10)
  }

  /// The extension's value in the words of OpenSSL's configuration.
  var extensionText: String {
    (domains.map { "permitted;DNS:" + $0 } + networks.map { "permitted;IP:" + $0 }).joined(separator: ",")
  }
}

internal import CAPNSMockOpenSSL

extension X509Certificate {
  /// The subject on one line, such as `CN=localhost,O=apns-mock` (RFC 2253), with special characters escaped.
  package var subject: String { Self.line(X509_get_subject_name(pointer)) }

  /// The issuer's name, in the same form as `subject`.
  package var issuer: String { Self.line(X509_get_issuer_name(pointer)) }

  /// The subject's common name, if it has one.
  package var commonName: String? { subjectText(NID_commonName) }

  /// The issuer's organization, if its name has one.
  package var issuerOrganization: String? { Self.text(NID_organizationName, in: X509_get_issuer_name(pointer)) }

  /// The host names and addresses in the subject alternative names; other kinds are omitted.
  package var names: [CertificateName] {
    guard let stack = X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return [] }
    let names = OpaquePointer(stack)
    defer { OPENSSL_sk_pop_free(names) { GENERAL_NAME_free($0?.assumingMemoryBound(to: GENERAL_NAME.self)) } }
    return (0..<max(0, OPENSSL_sk_num(names))).compactMap { index in
      let name = OPENSSL_sk_value(names, index)?.assumingMemoryBound(to: GENERAL_NAME.self)
      var kind: Int32 = 0
      guard let name, let value = GENERAL_NAME_get0_value(name, &kind) else { return nil }
      let bytes = Self.bytes(value.assumingMemoryBound(to: ASN1_STRING.self))
      switch kind {
      case GEN_DNS: return .domain(String(decoding: bytes, as: UTF8.self).lowercased())
      case GEN_IPADD: return .address(bytes)
      default: return nil
      }
    }
  }

  /// Returns the first value of an attribute of the subject.
  func subjectText(_ nid: Int32) -> String? {
    Self.text(nid, in: X509_get_subject_name(pointer))
  }

  /// Returns the DER value of the extension with this object identifier, if there is one.
  func extensionValue(_ identifier: String) -> [UInt8]? {
    guard let object = OBJ_txt2obj(identifier, 1) else { return nil }
    defer { ASN1_OBJECT_free(object) }
    let index = X509_get_ext_by_OBJ(pointer, object, -1)
    guard index >= 0, let value = X509_EXTENSION_get_data(X509_get_ext(pointer, index)) else { return nil }
    return Self.bytes(value)
  }

  private static func text(_ nid: Int32, in name: OpaquePointer?) -> String? {
    let index = X509_NAME_get_index_by_NID(name, nid, -1)
    guard index >= 0, let value = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index)) else { return nil }
    // Converts the older string types too; the caller frees the result.
    var utf8: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&utf8, value)
    defer { CRYPTO_free(utf8, nil, 0) }
    guard count >= 0, let utf8 else {
      ERR_clear_error()
      return nil
    }
    return String(decoding: UnsafeBufferPointer(start: utf8, count: Int(count)), as: UTF8.self)
  }

  private static func bytes(_ string: UnsafePointer<ASN1_STRING>) -> [UInt8] {
    Array(UnsafeBufferPointer(start: ASN1_STRING_get0_data(string), count: Int(ASN1_STRING_length(string))))
  }

  private static func line(_ name: OpaquePointer?) -> String {
    let text = try? MemoryBIO.writtenText { bio in
      X509_NAME_print_ex(bio, name, 0, APNS_XN_FLAG_RFC2253)
    }
    return text ?? ""
  }
}

/// Name constraints of a certificate authority (RFC 5280 section 4.2.1.10).
extension X509Certificate {
  /// Whether the name constraints contain IP addresses.
  ///
  /// BoringSSL does not support these and rejects every chain with such a certificate ("unsupported name constraint
  /// type").
  package var constrainsAddresses: Bool {
    withNameConstraints { constraints in
      [constraints.pointee.permittedSubtrees, constraints.pointee.excludedSubtrees].contains { subtrees in
        Self.addressIndices(subtrees).isEmpty == false
      }
    } ?? false
  }

  /// Returns an unsigned copy with a new serial number and without IP addresses in the name constraints. An
  /// extension that would become empty is omitted.
  ///
  /// - Throws: `TLSError` if there are no name constraints, or OpenSSL fails.
  func builderWithoutAddressConstraints() throws -> CertificateBuilder {
    let builder = try CertificateBuilder(copying: self)
    let isChanged = try withNameConstraints { constraints in
      Self.removeAddresses(from: &constraints.pointee.permittedSubtrees)
      Self.removeAddresses(from: &constraints.pointee.excludedSubtrees)
      let isEmpty = constraints.pointee.permittedSubtrees == nil && constraints.pointee.excludedSubtrees == nil
      try builder.replaceNameConstraints(isEmpty ? nil : UnsafeMutableRawPointer(constraints))
      return true
    }
    guard isChanged == true else { throw TLSError("the certificate has no name constraints") }
    return builder
  }

  /// Calls `body` with a copy of the name constraints; returns nil if there are none.
  private func withNameConstraints<Result>(
    _ body: (UnsafeMutablePointer<NAME_CONSTRAINTS>) throws -> Result
  ) rethrows -> Result? {
    guard let value = X509_get_ext_d2i(pointer, NID_name_constraints, nil, nil) else { return nil }
    let constraints = value.assumingMemoryBound(to: NAME_CONSTRAINTS.self)
    defer {
      NAME_CONSTRAINTS_free(constraints)
      ERR_clear_error()
    }
    return try body(constraints)
  }

  /// The indices of the IP addresses in a stack of subtrees, in ascending order.
  private static func addressIndices(_ subtrees: OpaquePointer?) -> [Int32] {
    guard let subtrees else { return [] }
    return (0..<max(0, OPENSSL_sk_num(subtrees))).filter { index in
      let subtree = OPENSSL_sk_value(subtrees, index)?.assumingMemoryBound(to: GENERAL_SUBTREE.self)
      return subtree?.pointee.base?.pointee.type == GEN_IPADD
    }
  }

  private static func removeAddresses(from subtrees: inout OpaquePointer?) {
    for index in addressIndices(subtrees).reversed() {
      GENERAL_SUBTREE_free(OPENSSL_sk_delete(subtrees, index)?.assumingMemoryBound(to: GENERAL_SUBTREE.self))
    }
    guard let stack = subtrees, OPENSSL_sk_num(stack) == 0 else { return }
    // An empty list must be absent (RFC 5280: SIZE (1..MAX)).
    OPENSSL_sk_free(stack)
    subtrees = nil
  }
}

/// The name constraints of a certificate authority (RFC 5280 section 4.2.1.10): the domains it may issue
/// certificates for.
///
/// A client that trusts the authority of a mock server trusts it for these names only, which limits the damage of a
/// leaked key. Addresses are not constrained: BoringSSL rejects every chain with constraints on IP addresses
/// ("unsupported name constraint type").
package struct NameConstraints: Sendable, Equatable {
  /// The permitted domains; each includes its subdomains.
  package private(set) var domains: [String] = []

  /// Creates an instance without domains, which means no constraints.
  package init() {}

  /// Permits a domain and its subdomains. Ignores addresses, which are always permitted.
  package mutating func add(_ name: CertificateName) {
    guard case .domain(let name) = name else { return }
    let domain = name.hasPrefix("*.") ? String(name.dropFirst(2)) : name
    if !domains.contains(domain) { domains.append(domain) }
  }

  /// The extension's value in the syntax of OpenSSL's configuration (x509v3_config(5)); nil without domains.
  var extensionText: String? {
    domains.isEmpty ? nil : domains.map { "permitted;DNS:" + $0 }.joined(separator: ",")
  }
}

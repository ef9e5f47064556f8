internal import COpenSSL

/// Name constraints of a certificate authority (RFC 5280 section 4.2.1.10).
extension X509Certificate {
  /// Whether the name constraints contain IP addresses.
  ///
  /// BoringSSL does not support these and rejects every chain with such a certificate ("unsupported name constraint
  /// type").
  public var constrainsAddresses: Bool {
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
  func draftWithoutAddressConstraints() throws -> CertificateDraft {
    let draft = try CertificateDraft(copying: self)
    let isChanged = try withNameConstraints { constraints in
      Self.removeAddresses(from: &constraints.pointee.permittedSubtrees)
      Self.removeAddresses(from: &constraints.pointee.excludedSubtrees)
      let isEmpty = constraints.pointee.permittedSubtrees == nil && constraints.pointee.excludedSubtrees == nil
      try draft.replaceNameConstraints(isEmpty ? nil : UnsafeMutableRawPointer(constraints))
      return true
    }
    guard isChanged == true else { throw TLSError("the certificate has no name constraints") }
    return draft
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

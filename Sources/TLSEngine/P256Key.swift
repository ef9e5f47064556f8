internal import COpenSSL

/// Owns an OpenSSL P-256 key: a key pair or only a public key.
final class P256Key: Sendable {
  // Reference counted and never changed after `init`; OpenSSL 3 allows concurrent use of a key.
  nonisolated(unsafe) let pointer: OpaquePointer

  /// Takes ownership of `pointer`, which is freed even if this throws.
  ///
  /// - Throws: `TLSError` if it is not a P-256 key.
  init(takingOver pointer: OpaquePointer) throws {
    self.pointer = pointer
    let kind = Self.kind(of: pointer)
    guard kind == "P-256" else { throw TLSError("the key is of the kind \(kind), not an elliptic curve key on P-256") }
  }

  /// Generates a new key pair.
  init() throws {
    let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1,
      EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context, NID_X9_62_prime256v1) == 1,
      EVP_PKEY_keygen(context, &key) == 1, let key
    else { throw TLSError("cannot make a P-256 key") }
    pointer = key
  }

  deinit { EVP_PKEY_free(pointer) }

  private static func kind(of key: OpaquePointer) -> String {
    guard EVP_PKEY_is_a(key, "EC") == 1 else {
      return EVP_PKEY_get0_type_name(key).map { String(cString: $0) } ?? "unknown"
    }
    if EVP_PKEY_get_bits(key) == 256 {
      var name = [CChar](repeating: 0, count: 64)
      var count = 0
      if EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1 {
        let text = String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return text == "prime256v1" || text == "P-256" ? "P-256" : text
      }
    }
    return "EC with \(EVP_PKEY_get_bits(key)) bits"
  }
}

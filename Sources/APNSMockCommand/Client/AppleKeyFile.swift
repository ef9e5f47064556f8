import MockAPNS
import Notation
import TLSEngine

/// A provider key file as downloaded from Apple: `AuthKey_ABC123DEFG.p8`.
enum AppleKeyFile {
  /// Returns the key id in the file name; nil if the name has another form.
  static func keyID(in path: String) -> String? {
    let name = path.split(separator: "/").last ?? ""
    guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    return String(name.dropFirst("AuthKey_".count).dropLast(".p8".count))
  }

  /// Returns the public key from a file with a private or public key in PEM.
  ///
  /// - Throws: `CommandFailure` that names the file and describes its content.
  static func publicKey(at path: String) throws -> ES256PublicKey {
    let pem = try Files.text(of: path)
    do {
      return pem.contains("-----BEGIN PUBLIC KEY-----")
        ? try ES256PublicKey(pem: pem) : try ES256PrivateKey(pem: pem).publicKey
    } catch {
      throw CommandFailure(.usage, "\(path): \(error); \(repair(pem, path))")
    }
  }

  private static func repair(_ pem: String, _ path: String) -> String {
    if pem.contains("ENCRYPTED") {
      return "decrypt it: openssl pkey -in \(path.shellQuoted) -out decrypted.p8"
    }
    return "specify the .p8 file downloaded from Apple, or its public key (openssl pkey -pubout)"
  }

  /// Validates an id specified by a flag.
  ///
  /// - Throws: `CommandFailure` that names the flag.
  static func checkIdentifier(_ text: String, flag: String) throws {
    guard ProviderKeysFile.isIdentifier(text) else {
      throw CommandFailure(
        .usage, "\(flag): \"\(text)\" is not an id of ten letters and digits, as shown in Apple's developer account")
    }
  }
}

import MockAPNS
import Notation
import TLSEngine

/// A provider key's file, as Apple's download: `AuthKey_ABC123DEFG.p8`.
enum AppleKeyFile {
  /// The key's id, if the file's name tells it.
  static func keyID(in path: String) -> String? {
    let name = path.split(separator: "/").last ?? ""
    guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    return String(name.dropFirst("AuthKey_".count).dropLast(".p8".count))
  }

  /// The public half of the key in a file, which holds the private or the public one in PEM.
  ///
  /// - Throws: `CommandFailure` that names the file and says what stands in it instead.
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
    return "give the .p8 file as Apple's developer site hands it out, or its public half (openssl pkey -pubout)"
  }

  /// Checks an id that was given by a flag.
  ///
  /// - Throws: `CommandFailure` that names the flag.
  static func checkIdentifier(_ text: String, flag: String) throws {
    guard ProviderKeysFile.isIdentifier(text) else {
      throw CommandFailure(
        .usage, "\(flag): \"\(text)\" is not ten letters and digits; take it as Apple's developer site shows it")
    }
  }
}

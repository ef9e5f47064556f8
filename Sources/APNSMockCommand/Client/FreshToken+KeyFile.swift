import MockAPNS
import TLSEngine

extension FreshToken {
  /// The JWT, signed with the key in the file `keyPath`.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func signed(withKeyAt keyPath: String) throws -> String {
    let pem: String
    do {
      pem = try Files.text(of: keyPath)
    } catch let error as CommandFailure {
      throw CommandFailure(
        .usage, "\(error); apns-mock certs makes a key, --key FILE or --certs DIR says where one is")
    }
    do {
      return try signed(with: ES256PrivateKey(pem: pem))
    } catch {
      throw CommandFailure(.usage, "\(keyPath): \(error); give it a P-256 key as Apple's .p8 download")
    }
  }
}

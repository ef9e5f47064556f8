import MockAPNS
import TLSEngine

extension FreshToken {
  /// Returns the JWT, signed with the key in the file `keyPath`.
  ///
  /// - Throws: `CommandFailure` that names the file.
  func signed(withKeyAt keyPath: String) throws -> String {
    let pem: String
    do {
      pem = try Files.text(of: keyPath)
    } catch let error as CommandFailure {
      throw CommandFailure(
        .usage, "\(error); create a key with apns-mock certs, or specify one with --key FILE or --certs DIR")
    }
    do {
      return try signed(with: ES256PrivateKey(pem: pem))
    } catch {
      throw CommandFailure(.usage, "\(keyPath): \(error); specify a P-256 key such as Apple's .p8 file")
    }
  }
}

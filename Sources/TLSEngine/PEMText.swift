/// Descriptions of PEM texts for error messages.
enum PEMText {
  /// Describes the first block, with an indefinite article.
  static func content(of text: String) -> String {
    guard let begin = text.firstRange(of: "-----BEGIN "), let end = text[begin.upperBound...].firstRange(of: "-----")
    else {
      return text.allSatisfy(\.isWhitespace) ? "empty" : "not a PEM text"
    }
    switch text[begin.upperBound..<end.lowerBound] {
    case "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY": return "a private key"
    case "ENCRYPTED PRIVATE KEY": return "an encrypted private key"
    case "PUBLIC KEY", "RSA PUBLIC KEY": return "a public key"
    case "CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE": return "a certificate"
    case "CERTIFICATE REQUEST": return "a certificate request"
    default: return "something else"
    }
  }
}

/// Returns advice for a failed TLS handshake or connection, selected by the words of OpenSSL's reason; empty if
/// there is none.
func handshakeAdvice(for reason: String) -> String {
  for (words, advice) in advices where reason.contains(words) { return "; " + advice }
  return ""
}

private let advices = [
  ("unknown ca", "the client does not trust this server's CA: give it ca.pem from the certificate folder"),
  (
    "certificate unknown",
    "the client does not accept this server's certificate: give it ca.pem from the certificate folder, and connect by a name it bears (--san adds one)"
  ),
  (
    "bad certificate",
    "the client does not accept this server's certificate: give it ca.pem from the certificate folder, and connect by a name it bears (--san adds one)"
  ),
  ("certificate has expired", "make a new client certificate with apns-mock certs client"),
  (
    "self-signed certificate",
    "the client's certificate is of an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  (
    "unable to get local issuer certificate",
    "the client's certificate is of an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  ("unsupported protocol", "the client offers no TLS 1.2 or 1.3"),
  ("wrong version number", "what came is not TLS"),
]

/// Returns advice for a failed TLS handshake or connection, selected by the words of OpenSSL's reason; empty if
/// there is none.
func handshakeAdvice(for reason: String) -> String {
  for (words, advice) in advices where reason.contains(words) { return "; " + advice }
  return ""
}

private let advices = [
  ("unknown ca", "the client does not trust this server's CA: configure it to trust ca.pem of the certificate folder"),
  (
    "certificate unknown",
    "the client rejects this server's certificate: configure it to trust ca.pem of the certificate folder, and connect by a name in the certificate (--san adds one)"
  ),
  (
    "bad certificate",
    "the client rejects this server's certificate: configure it to trust ca.pem of the certificate folder, and connect by a name in the certificate (--san adds one)"
  ),
  ("certificate has expired", "create a new client certificate with apns-mock certs client"),
  (
    "self-signed certificate",
    "the client's certificate is issued by an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  (
    "unable to get local issuer certificate",
    "the client's certificate is issued by an unknown CA: trust its CA with --client-ca, or use client.pem"
  ),
  ("unsupported protocol", "the client does not support TLS 1.2 or 1.3"),
  ("wrong version number", "the client does not use TLS"),
]

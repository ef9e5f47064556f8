// Code to connect common client libraries: the examples of the documentation with this server's values.

/** Functions from `{host, port, ca, key, keyID, teamID, topic, token}` to the code. */
export const LIBRARIES = [
  ["curl", ({ host, port, ca, topic, token }) => `curl --include --http2 --cacert ${ca} \\
  --header "authorization: bearer $(apns-mock token provider)" \\
  --header "apns-topic: ${topic}" --header "apns-push-type: alert" \\
  --data '{"aps":{"alert":"Hello"}}' \\
  "https://${host}:${port}/3/device/${token}"`],
  ["Pushy (Java)", ({ host, port, ca, key, keyID, teamID }) => `final ApnsClient client = new ApnsClientBuilder()
    .setApnsServer("${host}", ${port})
    .setTrustedServerCertificateChain(new File("${ca}"))
    .setSigningKey(ApnsSigningKey.loadFromPkcs8File(
        new File("${key}"), "${teamID}", "${keyID}"))
    .build();`],
  ["node-apn (Node)", ({ host, port, ca, key, keyID, teamID }) => `const provider = new apn.Provider({
  token: { key: "${key}", keyId: "${keyID}", teamId: "${teamID}" },
  address: "${host}",
  port: ${port},
  ca: ["${ca}"],
});`],
  ["apns2 (Go)", ({ host, port, ca, key, keyID, teamID }) => `authKey, err := token.AuthKeyFromFile("${key}")
client := apns2.NewTokenClient(&token.Token{
	AuthKey: authKey, KeyID: "${keyID}", TeamID: "${teamID}",
})
client.Host = "https://${host}:${port}"
// Run it with SSL_CERT_FILE=${ca}`],
  ["APNSwift", ({ host, port, key, keyID, teamID }) => `let client = APNSClient(
  configuration: .init(
    authenticationMethod: .jwt(
      privateKey: try .init(
        pemRepresentation: String(contentsOfFile: "${key}", encoding: .utf8)),
      keyIdentifier: "${keyID}",
      teamIdentifier: "${teamID}"),
    environment: .custom(url: "https://${host}", port: ${port})),
  eventLoopGroupProvider: .createNew,
  responseDecoder: JSONDecoder(),
  requestEncoder: JSONEncoder())
// The CA must be in the system's trust store.`],
  ["aioapns (Python)", ({ host, port, ca, key, keyID, teamID, topic }) => `from aioapns.connection import APNsDevelopmentClientProtocol

APNsDevelopmentClientProtocol.APNS_SERVER = "${host}"
APNsDevelopmentClientProtocol.APNS_PORT = ${port}

client = APNs(
    key=open("${key}").read(), key_id="${keyID}", team_id="${teamID}",
    topic="${topic}", use_sandbox=True,
    ssl_context=ssl.create_default_context(cafile="${ca}"),
)`],
  ["apnotic (Ruby)", ({ host, port, key, keyID, teamID }) => `connection = Apnotic::Connection.new(
  auth_method: :token,
  cert_path: "${key}",
  key_id: "${keyID}",
  team_id: "${teamID}",
  url: "https://${host}:${port}"
)`],
];

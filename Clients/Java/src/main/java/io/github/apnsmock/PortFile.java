package io.github.apnsmock;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * The addresses and the key of a server, from its port file or the environment. Strings may be empty.
 *
 * @param apns the first APNs listener, or null
 */
record PortFile(Address admin, Address apns, String ca, String key, String keyId, String teamId, String adminToken) {
  /** Reads the file that the server writes when it is ready. */
  static PortFile read(Path path) {
    Values values;
    try {
      values = new Values(Json.parse(Files.readString(path)));
    } catch (IOException | IllegalArgumentException error) {
      throw new ApnsMockException("Cannot read the port file " + path + ": " + error, error);
    }
    List<Address> listeners = Address.list(values.list("apns"));
    return new PortFile(
        Address.of(values.object("admin")), listeners.isEmpty() ? null : listeners.get(0), values.string("ca"),
        values.string("key"), values.string("key_id"), values.string("team_id"), values.string("admin_token"));
  }

  /** Reads the environment that `apns-mock exec` sets. Its variables override the port file that one of them names. */
  static PortFile of(Map<String, String> environment) {
    String path = environment.getOrDefault("APNS_MOCK_PORT_FILE", "");
    PortFile file = path.isEmpty() ? new PortFile(null, null, "", "", "", "", "") : read(Path.of(path));
    Address admin = address(environment, "APNS_MOCK_ADMIN", file.admin);
    if (admin == null) {
      throw new ApnsMockException("Neither APNS_MOCK_ADMIN nor APNS_MOCK_PORT_FILE is set; run the tests with"
          + " `apns-mock exec -- COMMAND`, or start a server with ApnsMockServer.start().");
    }
    return new PortFile(
        admin, address(environment, "APNS_MOCK_APNS", file.apns), text(environment, "APNS_MOCK_CA", file.ca),
        text(environment, "APNS_MOCK_KEY", file.key), text(environment, "APNS_MOCK_KEY_ID", file.keyId),
        text(environment, "APNS_MOCK_TEAM_ID", file.teamId),
        text(environment, "APNS_MOCK_ADMIN_TOKEN", file.adminToken));
  }

  private static Address address(Map<String, String> environment, String variable, Address otherwise) {
    String value = environment.getOrDefault(variable, "");
    return value.isEmpty() ? otherwise : Address.parse(variable, value);
  }

  private static String text(Map<String, String> environment, String variable, String otherwise) {
    String value = environment.getOrDefault(variable, "");
    return value.isEmpty() ? otherwise : value;
  }
}

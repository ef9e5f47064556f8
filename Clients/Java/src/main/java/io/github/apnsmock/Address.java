package io.github.apnsmock;

import java.util.List;

/** A host and a port. */
record Address(String host, int port) {
  static List<Address> list(List<?> items) {
    return items.stream().map(Values::new).map(Address::of).toList();
  }

  static Address of(Values values) {
    return new Address(values.string("host"), (int) values.number("port"));
  }

  /** Parses the value of an environment variable: HOST:PORT, a list of which the first counts, or a URL. */
  static Address parse(String variable, String value) {
    String first = value.split(",", 2)[0].replaceFirst("^http://", "").replaceFirst("/$", "");
    int colon = first.lastIndexOf(':');
    if (colon < 1 || !first.substring(colon + 1).matches("[0-9]{1,5}")) {
      throw new ApnsMockException(variable + " is " + value + ", which is not an address; set it to HOST:PORT.");
    }
    String host = first.substring(0, colon).replaceFirst("^\\[(.*)]$", "$1");
    return new Address(host, Integer.parseInt(first.substring(colon + 1)));
  }

  /** Returns the address as it appears in a URL. */
  String authority() {
    return (host.contains(":") ? "[" + host + "]" : host) + ":" + port;
  }
}

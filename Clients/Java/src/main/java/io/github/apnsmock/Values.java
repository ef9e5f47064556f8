package io.github.apnsmock;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The members of a JSON object. Members that are absent, null or of another type have empty values. */
final class Values {
  private final Map<String, Object> members = new LinkedHashMap<>();

  Values(Object value) {
    if (value instanceof Map<?, ?> map) {
      map.forEach((name, member) -> members.put(String.valueOf(name), member));
    }
  }

  Map<String, Object> members() {
    return members;
  }

  Values object(String name) {
    return new Values(members.get(name));
  }

  List<?> list(String name) {
    return members.get(name) instanceof List<?> list ? list : List.of();
  }

  String string(String name) {
    return members.get(name) instanceof String string ? string : "";
  }

  long number(String name) {
    return members.get(name) instanceof Number number ? number.longValue() : 0;
  }

  boolean isTrue(String name) {
    return Boolean.TRUE.equals(members.get(name));
  }
}

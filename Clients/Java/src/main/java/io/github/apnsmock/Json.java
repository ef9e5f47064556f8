package io.github.apnsmock;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads and writes JSON (RFC 8259), because the JDK does not.
 *
 * <p>Objects are maps with their members in order, arrays are lists, numbers are {@link Long}, {@link BigInteger} (if
 * they are too large for a long) or {@link Double}; null is null.
 */
final class Json {
  /** The maximum number of objects and arrays inside each other. */
  static final int MAX_DEPTH = 200;

  private final String text;
  private int position;

  private Json(String text) {
    this.text = text;
  }

  /**
   * Parses a JSON text.
   *
   * @throws IllegalArgumentException if it is not valid
   */
  static Object parse(String text) {
    Json parser = new Json(text);
    Object value = parser.value(0);
    parser.skipSpace();
    if (parser.position < text.length()) {
      throw parser.error("text after the value");
    }
    return value;
  }

  /**
   * Writes a value as JSON.
   *
   * @throws IllegalArgumentException if a value is not a map with string keys, an iterable, a string, a finite number,
   *     a boolean or null
   */
  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, 0, out);
    return out.toString();
  }

  private Object value(int depth) {
    skipSpace();
    if (depth > MAX_DEPTH) {
      throw error("more than " + MAX_DEPTH + " levels");
    }
    return switch (peek()) {
      case '{' -> object(depth);
      case '[' -> array(depth);
      case '"' -> string();
      case 't' -> literal("true", true);
      case 'f' -> literal("false", false);
      case 'n' -> literal("null", null);
      default -> number();
    };
  }

  private Map<String, Object> object(int depth) {
    Map<String, Object> members = new LinkedHashMap<>();
    position++;
    skipSpace();
    if (accept('}')) {
      return members;
    }
    do {
      skipSpace();
      if (peek() != '"') {
        throw error("a member without a name");
      }
      String name = string();
      skipSpace();
      expect(':');
      members.put(name, value(depth + 1));
      skipSpace();
    } while (accept(','));
    expect('}');
    return members;
  }

  private List<Object> array(int depth) {
    List<Object> items = new ArrayList<>();
    position++;
    skipSpace();
    if (accept(']')) {
      return items;
    }
    do {
      items.add(value(depth + 1));
      skipSpace();
    } while (accept(','));
    expect(']');
    return items;
  }

  private String string() {
    StringBuilder out = new StringBuilder();
    position++;
    while (true) {
      char next = next();
      if (next == '"') {
        return out.toString();
      } else if (next == '\\') {
        out.append(escape());
      } else if (next < 0x20) {
        throw error("a control character in a string");
      } else {
        out.append(next);
      }
    }
  }

  private char escape() {
    char kind = next();
    return switch (kind) {
      case '"', '\\', '/' -> kind;
      case 'b' -> '\b';
      case 'f' -> '\f';
      case 'n' -> '\n';
      case 'r' -> '\r';
      case 't' -> '\t';
      case 'u' -> {
        int code = 0;
        for (int i = 0; i < 4; i++) {
          char digit = next();
          if (digit > 'f' || Character.digit(digit, 16) < 0) {
            throw error("an invalid \\u escape");
          }
          code = code * 16 + Character.digit(digit, 16);
        }
        yield (char) code;
      }
      default -> throw error("an invalid escape");
    };
  }

  private Object literal(String word, Object value) {
    if (!text.startsWith(word, position)) {
      throw error("an invalid value");
    }
    position += word.length();
    return value;
  }

  private Number number() {
    int start = position;
    accept('-');
    if (!accept('0')) {
      digits();
    }
    boolean isInteger = true;
    if (accept('.')) {
      isInteger = false;
      digits();
    }
    if (accept('e') || accept('E')) {
      isInteger = false;
      if (!accept('+')) {
        accept('-');
      }
      digits();
    }
    String digits = text.substring(start, position);
    if (!isInteger) {
      return Double.valueOf(digits);
    }
    // A long has up to 18 digits for certain, a sign not counted.
    return digits.length() <= 18 ? (Number) Long.valueOf(digits) : shortest(new BigInteger(digits));
  }

  private static Number shortest(BigInteger value) {
    return value.bitLength() < Long.SIZE ? (Number) value.longValue() : value;
  }

  private void digits() {
    int start = position;
    while (position < text.length() && text.charAt(position) >= '0' && text.charAt(position) <= '9') {
      position++;
    }
    if (position == start) {
      throw error("an invalid value");
    }
  }

  private void skipSpace() {
    while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) {
      position++;
    }
  }

  private char peek() {
    if (position == text.length()) {
      throw error("an unexpected end");
    }
    return text.charAt(position);
  }

  private char next() {
    char next = peek();
    position++;
    return next;
  }

  private boolean accept(char expected) {
    boolean isNext = position < text.length() && text.charAt(position) == expected;
    if (isNext) {
      position++;
    }
    return isNext;
  }

  private void expect(char expected) {
    if (!accept(expected)) {
      throw error("no '" + expected + "'");
    }
  }

  private IllegalArgumentException error(String problem) {
    return new IllegalArgumentException("The JSON text has " + problem + " at offset " + position + ".");
  }

  private static void write(Object value, int depth, StringBuilder out) {
    if (depth > MAX_DEPTH) {
      throw new IllegalArgumentException("The value has more than " + MAX_DEPTH + " levels.");
    }
    if (value instanceof Map<?, ?> map) {
      write(map, depth, out);
    } else if (value instanceof Iterable<?> items) {
      char separator = '[';
      for (Object item : items) {
        out.append(separator);
        write(item, depth + 1, out);
        separator = ',';
      }
      out.append(separator == '[' ? "[]" : "]");
    } else if (value instanceof String string) {
      write(string, out);
    } else if (value instanceof Number number && Double.isFinite(number.doubleValue())) {
      out.append(number);
    } else if (value == null || value instanceof Boolean) {
      out.append(value);
    } else {
      throw new IllegalArgumentException(
          "The value " + value + " of " + value.getClass() + " cannot be written as JSON; use maps with string keys,"
              + " lists, strings, finite numbers, booleans or null.");
    }
  }

  private static void write(Map<?, ?> map, int depth, StringBuilder out) {
    char separator = '{';
    for (Map.Entry<?, ?> member : map.entrySet()) {
      if (!(member.getKey() instanceof String name)) {
        throw new IllegalArgumentException("The key " + member.getKey() + " of a map is not a string.");
      }
      out.append(separator);
      write(name, out);
      out.append(':');
      write(member.getValue(), depth + 1, out);
      separator = ',';
    }
    out.append(separator == '{' ? "{}" : "}");
  }

  private static void write(String string, StringBuilder out) {
    out.append('"');
    for (int i = 0; i < string.length(); i++) {
      char next = string.charAt(i);
      if (next == '"' || next == '\\') {
        out.append('\\').append(next);
      } else if (next < 0x20 || Character.isSurrogate(next)) {
        // Escaped surrogates stay valid JSON even if one of a pair is missing.
        out.append(String.format("\\u%04x", (int) next));
      } else {
        out.append(next);
      }
    }
    out.append('"');
  }
}

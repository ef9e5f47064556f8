package io.github.apnsmock;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.math.BigInteger;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class JsonTest {
  @Test
  void parsesAllTypes() {
    Object value = Json.parse(" {\"a\": [1, -2.5e1, true, false, null, \"x\"], \"b\": {}, \"c\": []} ");
    assertEquals(
        Map.of("a", Arrays.asList(1L, -25.0, true, false, null, "x"), "b", Map.of(), "c", List.of()), value);
  }

  @Test
  void parsesNumbersExactly() {
    assertEquals(Long.MAX_VALUE, Json.parse("9223372036854775807"));
    assertEquals(Long.MIN_VALUE, Json.parse("-9223372036854775808"));
    assertEquals(new BigInteger("18446744073709551615"), Json.parse("18446744073709551615"));
    assertEquals(0L, Json.parse("-0"));
    assertEquals(0.134, Json.parse("0.134"));
  }

  @Test
  void parsesEscapes() {
    assertEquals("\"\\/\b\f\n\r\té😀", Json.parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00E9\\ud83d\\uDE00\""));
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "", " ", "{", "[", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "{,}", "\"", "\"\\x\"",
      "\"\\u12\"", "\"\\u12G4\"", "\"\\u+123\"", "\"\n\"", "01", "-", "1.", ".5", "1e", "+1", "nul", "truex", "1 2",
      "]", "NaN", "\u00a01", "１"})
  void rejectsInvalidText(String text) {
    assertThrows(IllegalArgumentException.class, () -> Json.parse(text));
  }

  @Test
  void limitsDepth() {
    int depth = Json.MAX_DEPTH;
    Json.parse("[".repeat(depth) + "]".repeat(depth));
    assertThrows(IllegalArgumentException.class, () -> Json.parse("[".repeat(1_000_000)));
    assertThrows(IllegalArgumentException.class, () -> Json.parse("{\"a\":".repeat(1_000_000)));
    Map<String, Object> endless = new HashMap<>();
    endless.put("a", List.of(endless));
    assertThrows(IllegalArgumentException.class, () -> Json.write(endless));
  }

  @Test
  void writesWhatItParses() {
    String text = "{\"a\":[1,2.5,true,null,\"\\\"\\\\\\u000a\\ud83d\\ude00é\"],\"b\":{},\"c\":[]}";
    assertEquals(text, Json.write(Json.parse(text)));
  }

  @Test
  void rejectsOtherTypes() {
    for (Object value : Arrays.asList(Double.NaN, Double.POSITIVE_INFINITY, 'c', new Object(), Map.of(1, 2))) {
      assertThrows(IllegalArgumentException.class, () -> Json.write(value));
    }
  }
}

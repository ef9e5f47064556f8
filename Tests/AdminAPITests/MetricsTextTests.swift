import Testing

@testable import APNSMockAdminAPI

/// The text of metrics, in both formats.
@Suite struct MetricsTextTests {
  @Test func writesCounters() {
    var text = MetricsText(.prometheus)
    text.family("x", .counter, "Things.", [.init(labels: [("a", "1"), ("b", "")], value: "3"), .init(value: "4")])
    #expect(
      text.text == """
        # HELP x_total Things.
        # TYPE x_total counter
        x_total{a="1",b=""} 3
        x_total 4

        """)
  }

  @Test func familiesAreNamedAsInOpenMetrics() {
    var text = MetricsText(.openMetrics)
    text.family("x", .counter, "Things.", 3)
    text.family("y", .gauge, "Others.", 4)
    #expect(
      text.text == """
        # HELP x Things.
        # TYPE x counter
        x_total 3
        # HELP y Others.
        # TYPE y gauge
        y 4
        # EOF

        """)
  }

  @Test func bucketsAreCumulative() {
    var text = MetricsText(.prometheus)
    text.histogram("t", "Time.", bounds: [0.5, 1], counts: [2, 0, 3], sum: 7.5)
    #expect(
      text.text == """
        # HELP t Time.
        # TYPE t histogram
        t_bucket{le="0.5"} 2
        t_bucket{le="1.0"} 2
        t_bucket{le="+Inf"} 5
        t_sum 7.5
        t_count 5

        """)
  }

  @Test(arguments: [
    (#"a"b"#, #"a\"b"#), (#"a\b"#, #"a\\b"#), ("a\nb", #"a\nb"#), ("a\r\nb", #"a\nb"#), ("ä", "ä"), ("a} 1", "a} 1"),
  ])
  func labelValuesAreEscaped(value: String, written: String) {
    var text = MetricsText(.prometheus)
    text.family("x", .gauge, "Things.", [.init(labels: [("a", value)], value: "1")])
    #expect(text.text.hasSuffix("\nx{a=\"\(written)\"} 1\n"))
  }
}

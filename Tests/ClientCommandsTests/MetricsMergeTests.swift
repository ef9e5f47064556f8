import Testing

@testable import APNSMockClientCommands

@Suite struct MetricsMergeTests {
  private static func merged(_ texts: String...) throws -> String {
    var merge = MetricsMerge()
    for text in texts { try merge.add(text) }
    return merge.text
  }

  @Test func valuesAreAddedByLabels() throws {
    let first = """
      # HELP apns_mock_pushes_total Pushes.
      # TYPE apns_mock_pushes_total counter
      apns_mock_pushes_total{outcome="accepted",reason=""} 5
      # HELP apns_mock_push_latency_seconds Time.
      # TYPE apns_mock_push_latency_seconds histogram
      apns_mock_push_latency_seconds_bucket{le="0.1"} 3
      apns_mock_push_latency_seconds_sum 0.5
      # HELP apns_mock_waits Waits.
      # TYPE apns_mock_waits gauge
      apns_mock_waits 1

      """
    let second = """
      # HELP apns_mock_pushes_total Pushes.
      # TYPE apns_mock_pushes_total counter
      apns_mock_pushes_total{outcome="accepted",reason=""} 7
      apns_mock_pushes_total{outcome="rejected",reason="a b } \\" 1"} 2
      # HELP apns_mock_push_latency_seconds Time.
      # TYPE apns_mock_push_latency_seconds histogram
      apns_mock_push_latency_seconds_bucket{le="0.1"} 4
      apns_mock_push_latency_seconds_sum 0.25
      # HELP apns_mock_new New.
      # TYPE apns_mock_new gauge
      apns_mock_new 9

      """
    #expect(
      try Self.merged(first, second) == """
        # HELP apns_mock_pushes_total Pushes.
        # TYPE apns_mock_pushes_total counter
        apns_mock_pushes_total{outcome="accepted",reason=""} 12
        apns_mock_pushes_total{outcome="rejected",reason="a b } \\" 1"} 2
        # HELP apns_mock_push_latency_seconds Time.
        # TYPE apns_mock_push_latency_seconds histogram
        apns_mock_push_latency_seconds_bucket{le="0.1"} 7
        apns_mock_push_latency_seconds_sum 0.75
        # HELP apns_mock_waits Waits.
        # TYPE apns_mock_waits gauge
        apns_mock_waits 1
        # HELP apns_mock_new New.
        # TYPE apns_mock_new gauge
        apns_mock_new 9

        """)
  }

  @Test(arguments: [
    ("apns_mock_ready", "1", "0", "0"), ("apns_mock_faults_halted", "1", "0", "1"),
    ("apns_mock_store_working", "1", "0", "0"), ("apns_mock_store_lag_seconds", "0.25", "3", "3"),
    ("apns_mock_certificate_expiry_seconds", "1769864400", "1769864300", "1769864300"),
    ("process_start_time_seconds", "1769864400.5", "1769864300.25", "1769864300.25"),
    (#"apns_mock_build_info{version="1.0"}"#, "1", "1", "1"), ("apns_mock_waits", "2", "3", "5"),
  ])
  func gauges(name: String, first: String, second: String, merged: String) throws {
    #expect(try Self.merged("\(name) \(first)\n", "\(name) \(second)\n") == "\(name) \(merged)\n")
  }

  @Test func openMetricsStaysOpenMetrics() throws {
    let text = "# HELP apns_mock_waits Waits.\n# TYPE apns_mock_waits gauge\napns_mock_waits 1\n# EOF\n"
    #expect(try Self.merged(text, text) == text.replacing("waits 1", with: "waits 2"))
  }

  @Test(arguments: [("apns_mock_waits 1\nhello\n", 2), ("<html>", 1), ("a b", 1)])
  func errorNamesTheLine(text: String, line: Int) {
    let error = #expect(throws: MetricsMerge.Problem.self) { try Self.merged(text) }
    #expect(error?.line == line)
  }
}

import Foundation
import APNSMockNotation
import Testing

@testable import APNSMockInbox

/// Counts over time in a bounded number of buckets.
@Suite struct TimelineTests {
  private func written(_ timeline: Timeline) throws -> (start: String?, bucket: Int?, counts: [String: [Int]]) {
    var writer = JSONWriter()
    writer.object(timeline.write)
    let object = try #require(try JSONSerialization.jsonObject(with: Data(writer.bytes)) as? [String: Any])
    return (object["start"] as? String, object["bucket_ms"] as? Int, object["counts"] as? [String: [Int]] ?? [:])
  }

  @Test func countsAreInBucketsOfEqualWidth() throws {
    var timeline = Timeline(maxBuckets: 10)
    for time in [1000, 1999, 3000, 9999] as [Int64] { timeline.add(time, to: "accepted") }
    timeline.add(3001, to: "rejected")
    let found = try written(timeline)
    #expect(found.start == "1970-01-01T00:00:01.000Z")
    #expect(found.bucket == 1000)
    #expect(found.counts["accepted"] == [2, 0, 1, 0, 0, 0, 0, 0, 1])
    #expect(found.counts["rejected"] == [0, 0, 1, 0, 0, 0, 0, 0, 0])
  }

  /// Whatever the clock of the records was, and in any order: no record is lost and there are few buckets.
  @Test(arguments: [1, 2, 7, 500])
  func numberOfBucketsIsBounded(maxBuckets: Int) throws {
    var timeline = Timeline(maxBuckets: maxBuckets)
    let range = TimestampFormat.range
    let times: [Int64] = [0, 5, -5, 1_795_590_000_000, range.upperBound, range.lowerBound, 3, -86_400_001]
    for (number, time) in times.enumerated() {
      timeline.add(time, to: "accepted")
      let counts = try #require(try written(timeline).counts["accepted"])
      // A range that contains a boundary of the widest buckets has two of them.
      #expect(counts.count <= max(2, maxBuckets))
      #expect(counts.reduce(0, +) == number + 1)
    }
    timeline.add(.max, to: "accepted")
    #expect(try written(timeline).counts["accepted"]?.reduce(0, +) == times.count)
  }

  @Test func emptyTimelineHasNoStart() throws {
    let found = try written(Timeline(maxBuckets: 10))
    #expect(found.start == nil && found.counts.isEmpty)
  }
}

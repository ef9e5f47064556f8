import Testing

@testable import APNSMockInbox

@Suite struct SeqSetTests {
  /// Compares with a set of the standard library, over values around the limits of words.
  @Test func behavesAsASet() {
    var generator = SystemRandomNumberGenerator()
    for _ in 0..<200 {
      var set = SeqSet()
      var expected: Set<Int> = []
      let first = Int.random(in: 0...1000, using: &generator)
      for _ in 0..<60 {
        let seq = first + Int.random(in: 0...200, using: &generator)
        switch Int.random(in: 0...9, using: &generator) {
        case 0:
          set.removeAll(through: seq)
          expected = expected.filter { $0 > seq }
        case 1...3: #expect(set.remove(seq) == (expected.remove(seq) != nil))
        default: #expect(set.insert(seq) == expected.insert(seq).inserted)
        }
        #expect(set.count == expected.count)
        #expect(set.prefix(5) == Array(expected.sorted().prefix(5)))
      }
      set.removeAll(through: .max)
      #expect(set.isEmpty)
    }
  }
}

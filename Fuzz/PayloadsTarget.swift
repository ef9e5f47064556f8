import APNSMockFaultModel
import APNSMockFaults
import Foundation
import APNSMockInbox
import APNSMockNotation

@testable import APNSMockRules

/// Fuzzes payloads and JSON in general: all of our parsers must accept the same inputs with equal results, and
/// Foundation must accept them too.
struct PayloadsTarget: FuzzTarget {
  init() {}

  func run(_ bytes: UnsafeRawBufferPointer) {
    let problem = JSONText.problem(in: bytes)
    compareWithFoundation(bytes, problem)
    compareWithNodes(bytes, problem)
    // The comparisons of names and tokens get bytes of a peer too.
    let mistakes = PayloadMistakes(bytes, type: .alert).texts
    expect(mistakes.count <= 3 && (problem == nil || mistakes.isEmpty), "mistakes in \(mistakes)")
    expect(NearDeviceToken.candidates(for: bytes).count <= 16, "too many candidates")
    _ = NearPath(bytes)
    let sketch = Result { () throws(JSONText.Problem) in try PayloadSummary(bytes) }
    if let problem {
      expect(problem.offset <= bytes.count, "\(problem), there are \(bytes.count)")
      expect((try? sketch.get()) == nil, "a payload is taken that is not JSON: \(problem)")
      // For invalid JSON any result is allowed, but the parsers must terminate.
      var reader = JSONReader(bytes)
      _ = try? JSONTree(&reader)
      _ = JSONPointer("/aps/alert/0/title")?.value(in: bytes)
      _ = JSONScanner.unescaped(bytes)
      return
    }
    compareReaders(bytes)
    if case .success(let sketch) = sketch {
      expect((sketch != nil) == (bytes.first { $0 > 0x20 } == UInt8(ascii: "{")), "an object is not seen as one")
    }
    _ = Verification.looksRight(bytes)
  }

  /// Checks that the reader of fixtures accepts the same JSON, except for its limits and a byte order mark.
  private func compareWithNodes(_ bytes: UnsafeRawBufferPointer, _ problem: JSONText.Problem?) {
    guard bytes.first != 0xEF else { return }
    do throws(YAMLError) {
      var reader = JSONNodeReader(bytes)
      _ = try reader.node()
      try reader.end()
      expect(problem == nil, "JSONNodeReader reads what is not JSON: \(problem?.description ?? "")")
    } catch {
      let isLimit = !error.message.hasPrefix("invalid JSON")
      expect(problem != nil || isLimit, "JSONNodeReader rejects JSON: \(error)")
    }
  }

  private func compareReaders(_ bytes: UnsafeRawBufferPointer) {
    var reader = JSONReader(bytes)
    let tree: JSONTree
    do {
      tree = try JSONTree(&reader)
    } catch {
      fatalError("JSONReader stops at what JSONText took: \(error)")
    }
    let other = JSONTree(JSONValue(Array(bytes)[...]))
    expect(tree == other, "JSONReader sees \(tree), JSONValue \(other)")
    tree.visit(100) { pointer, value in
      guard let pointer = JSONPointer(pointer) else { fatalError("\(pointer) is no pointer") }
      guard let found = pointer.value(in: bytes) else { fatalError("nothing is found at \(pointer)") }
      expect(JSONTree(found) == value, "\(found) is found at \(pointer), and not \(value)")
      if case .text(let text) = value { write(text) }
    }
  }

  /// Checks that a text does not change when it is written and read.
  private func write(_ text: String) {
    var writer = JSONWriter()
    writer.string(text)
    writer.bytes.withUnsafeBytes { bytes in
      var reader = JSONReader(bytes)
      let again = try? reader.string()
      expect(again?.utf8.elementsEqual(text.utf8) == true, "\(text) is read as \(again ?? "nothing")")
    }
  }

  /// Foundation accepts more: other encodings, a byte order mark, unpaired surrogates, trailing commas. Of the
  /// inputs we accept, it rejects numbers that exceed a Double.
  private func compareWithFoundation(_ bytes: UnsafeRawBufferPointer, _ problem: JSONText.Problem?) {
    let theirs = Result { try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed) }
    switch (problem, theirs) {
    case (nil, .failure(let error)):
      expect("\(error)".contains("umber"), "Foundation refuses what we take: \(error)")
    case (let problem?, .success):
      let isKnown =
        ["not UTF-8", "surrogate", "nested deeper"].contains { problem.reason.contains($0) }
        || bytes.starts(with: [0xEF, 0xBB, 0xBF]) || bytes.contains(0) || isAfterComma(problem.offset, bytes)
      expect(isKnown, "we refuse what Foundation takes: \(problem)")
    default: break
    }
  }

  private func isAfterComma(_ offset: Int, _ bytes: UnsafeRawBufferPointer) -> Bool {
    guard offset < bytes.count, [UInt8(ascii: "]"), UInt8(ascii: "}")].contains(bytes[offset]) else { return false }
    return bytes[..<offset].last { $0 > 0x20 } == UInt8(ascii: ",")
  }
}

extension Verification {
  /// Whether the bytes can be parsed as a `Verification`.
  fileprivate static func looksRight(_ bytes: UnsafeRawBufferPointer) -> Bool {
    (try? Verification(json: Array(bytes))) != nil
  }
}

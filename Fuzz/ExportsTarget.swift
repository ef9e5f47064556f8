import APNSMockRules
import Foundation
import APNSMockInbox
import MockAPNS

/// Fuzzes the import of exports, in pieces of any size. An imported export that is exported and imported again must
/// not change.
struct ExportsTarget: FuzzTarget {
  private static let rulebook = Rulebook()
  /// Exports of the records of `ConnectionsTarget`'s seeds.
  let seeds: [[UInt8]]

  init() throws {
    let connections = try ConnectionsTarget()
    let folder = URL(filePath: "Fuzz/Seeds/connections")
    seeds = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).map { file in
      let state = try Data(contentsOf: file).withUnsafeBytes { connections.converse($0) }
      return [0xFF] + Self.written(state.inbox)
    }
  }

  func run(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let size = Int(input.byte())
    guard let inbox = try? read(Array(input.remaining), inPiecesOf: max(size, 1)) else { return }
    let first = Self.written(inbox)
    do {
      let second = Self.written(try read(first, inPiecesOf: 1 << 16))
      expect(
        first == second,
        "\(String(decoding: first, as: UTF8.self)) becomes \(String(decoding: second, as: UTF8.self))")
    } catch {
      fatalError("\(String(decoding: first, as: UTF8.self)) cannot be read again: \(error)")
    }
  }

  private func read(_ text: [UInt8], inPiecesOf size: Int) throws(InboxImport.Problem) -> Inbox {
    var reader = InboxImport(maxBytes: 64 << 20)
    for start in stride(from: 0, to: text.count, by: size) {
      let piece = text[start..<min(start + size, text.count)]
      try reader.read(Array(piece))
    }
    return try reader.finish()
  }

  private static func written(_ inbox: Inbox) -> [UInt8] {
    var export = InboxExport(inbox.snapshot(), .allKinds, as: .lines, rulebook: rulebook, in: inbox)
    var text: [UInt8] = []
    while let piece = try? export.next() { text += piece }
    return text
  }
}

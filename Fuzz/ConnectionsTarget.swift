import APNSRules
import Foundation
import Inbox
import Notation

@testable import MockAPNS

/// A provider's connection from its first byte to the records it leaves, through TLS and all: what it says stands in the
/// input as a script, a command a line.
struct ConnectionsTarget: FuzzTarget {
  private let server: FuzzServer

  init() throws { server = try FuzzServer() }

  func run(_ bytes: UnsafeRawBufferPointer) { lookAtRecords(of: converse(bytes)) }

  /// Does what the script says to a new server.
  ///
  /// On a thread of its own, so that nothing of the records is left that the event loop's next ones could share. What rules did
  /// is part of that, and the reference to an action carries its case in spare bits: LeakSanitizer would take it for lost.
  func converse(_ bytes: UnsafeRawBufferPointer) -> ServerState {
    var input = Input(bytes)
    // What stands on the first line is needed before anything is said.
    let beginning = input.text().split(separator: " ")
    let state = server.state(
      rules: beginning.contains("strict") ? .strict : beginning.contains("lenient") ? .lenient : .apple)
    var script = { converse(input, beginning, with: state) }
    withUnsafeMutablePointer(to: &script) { script in
      var thread = pthread_t()
      let isBegun = pthread_create(
        &thread, nil,
        { script in
          script?.assumingMemoryBound(to: (() -> Void).self).pointee()
          return nil
        }, script)
      expect(isBegun == 0 && pthread_join(thread, nil) == 0, "there is no thread")
    }
    return state
  }

  private func converse(_ input: consuming Input, _ beginning: [Substring], with state: ServerState) {
    for word in beginning { if let profile = server.profile(String(word)) { state.faults.use(profile) } }
    do {
      let provider = try FuzzProvider(server, state, hasCertificate: beginning.contains("certificate"))
      defer { provider.hangUp() }
      try provider.connect()
      var script = try ConnectionScript(provider)
      while !input.isAtEnd, provider.isOpen { try script.follow(&input) }
    } catch {
      // TLS or the connection is over, as it may be.
    }
  }

  /// Whatever came, what is written of it can be read.
  private func lookAtRecords(of state: ServerState) {
    var export = InboxExport(
      state.inbox.snapshot(), Selection(), as: .lines, rulebook: state.rulebook, in: state.inbox)
    var reader = InboxImport(maxBytes: 1 << 30)
    do throws(InboxImport.Problem) {
      while let piece = export.next() {
        for line in piece.split(separator: UInt8(ascii: "\n")) {
          let problem = line.withUnsafeBytes { JSONText.problem(in: $0) }
          expect(problem == nil, "a record is not JSON: \(problem?.description ?? "")")
        }
        try piece.withUnsafeBytes { bytes in Result { () throws(InboxImport.Problem) in try reader.read(bytes) } }.get()
      }
      _ = try reader.finish()
    } catch {
      fatalError("an export cannot be read again: \(error)")
    }
  }
}

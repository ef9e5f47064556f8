import Foundation
import MockAPNS

/// `openssl s_server`: a TLS server that has nothing to do with this project.
final class OpenSSLServer {
  let endpoint: Endpoint
  private let process = Process()
  private let input = Pipe()

  /// - Parameter arguments: what it is told besides its port.
  init(_ arguments: [String]) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-naccept", "4"] + arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = input
    try process.run()
    // It says "ACCEPT 127.0.0.1:40123" when it listens.
    var said = ""
    while !said.contains("\n") || !said.contains("ACCEPT") {
      let more = output.fileHandleForReading.availableData
      guard !more.isEmpty else { break }
      said += String(decoding: more, as: UTF8.self)
    }
    let line = said.split(separator: "\n").first { $0.hasPrefix("ACCEPT") } ?? ""
    guard let endpoint = Endpoint(line.dropFirst("ACCEPT ".count)) else { throw NotListening(said: said) }
    self.endpoint = endpoint
  }

  struct NotListening: Error {
    let said: String
  }

  deinit {
    // SIGTERM would wait for ever: the child inherits the signal mask of the thread that started it, and a thread of the
    // concurrency pool blocks all but SIGKILL.
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }
}

/// Runs the openssl program.
func openssl(_ arguments: String...) throws {
  let process = Process()
  process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
  process.arguments = ["openssl"] + arguments
  process.standardOutput = FileHandle.nullDevice
  process.standardError = FileHandle.nullDevice
  try process.run()
  process.waitUntilExit()
}

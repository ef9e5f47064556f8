import Foundation
package import MockAPNS
import NIOPosix

/// The openssl program as an independent check of keys, certificates and connections, with a folder for its files.
package struct OpenSSLTool: Sendable {
  /// The working directory of `run`.
  package let folder: TemporaryFolder

  /// The exit status and the combined output of a run.
  package struct Outcome: Sendable {
    package let status: Int32
    package let output: String
  }

  /// A run of openssl that failed, with its output.
  package struct Failure: Error {
    let output: String
  }

  package init() throws { folder = try TemporaryFolder() }

  /// Writes a file into the folder.
  package func write(_ name: String, _ bytes: [UInt8]) throws { try folder.file(name, bytes) }

  package func write(_ name: String, _ text: String) throws { try folder.file(name, text) }

  /// Returns the path of a file in the folder.
  package func path(_ name: String) -> String { folder.path(name) }

  /// Returns the content of a file in the folder.
  package func bytes(_ name: String) throws -> [UInt8] { try folder.bytes(name) }

  package func text(_ name: String) throws -> String { try folder.text(name) }

  /// Runs openssl in the folder until it exits.
  @discardableResult
  package func run(_ arguments: String...) throws -> Outcome { try Self.run(arguments, in: folder.path) }

  @discardableResult
  package func run(_ arguments: [String]) throws -> Outcome { try Self.run(arguments, in: folder.path) }

  /// Runs openssl in any folder until it exits.
  @discardableResult
  package static func run(_ arguments: [String], in folder: String? = nil) throws -> Outcome {
    let process = process(arguments)
    if let folder { process.currentDirectoryURL = URL(filePath: folder) }
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return Outcome(status: process.terminationStatus, output: String(decoding: output, as: UTF8.self))
  }

  /// Creates a self-signed certificate for one name.
  package static func makeCertificate(subject: String, name: String, chain: String, key: String) throws {
    let outcome = try run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", chain,
      "-subj", subject, "-addext", "subjectAltName=DNS:\(name)",
    ])
    guard outcome.status == 0 else { throw Failure(output: outcome.output) }
  }

  /// Runs `openssl s_server` on a free port while `body` runs.
  ///
  /// - Parameter arguments: The arguments in addition to the port.
  package static func serve(_ arguments: [String], _ body: (Endpoint) async throws -> Void) async throws {
    let process = process(["s_server", "-accept", "127.0.0.1:0", "-www"] + arguments)
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    // SIGTERM does not reach the process: it inherits the signal mask of a thread that blocks all signals.
    defer { kill(process.processIdentifier, SIGKILL) }
    // Not on the thread of the test: reading blocks until the server listens.
    let endpoint = try await NIOThreadPool.singleton.runIfActive { try listening(output.fileHandleForReading) }
    try await body(endpoint)
  }

  private static func process(_ arguments: [String]) -> Process {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["openssl"] + arguments
    process.standardInput = FileHandle.nullDevice
    return process
  }

  /// Returns the endpoint of the server, which prints "ACCEPT 127.0.0.1:40123" when it listens.
  private static func listening(_ output: FileHandle) throws -> Endpoint {
    var text = ""
    while true {
      let more = output.availableData
      text += String(decoding: more, as: UTF8.self)
      let line = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first {
        $0.hasPrefix("ACCEPT ")
      }
      if let line, let endpoint = Endpoint(line.dropFirst("ACCEPT ".count)) { return endpoint }
      if more.isEmpty { throw Failure(output: text) }
    }
  }
}

package import MockAPNS

/// The openssl program as an independent check of keys, certificates and connections, with a folder for its files.
package struct OpenSSLTool: Sendable {
  /// The working directory of `run`.
  package let folder: TemporaryFolder

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
  package func run(_ arguments: String...) async throws -> ChildProgram.Outcome {
    try await Self.run(arguments, in: folder.path)
  }

  @discardableResult
  package func run(_ arguments: [String]) async throws -> ChildProgram.Outcome {
    try await Self.run(arguments, in: folder.path)
  }

  /// Runs openssl in any folder until it exits.
  @discardableResult
  package static func run(_ arguments: [String], in folder: String? = nil) async throws -> ChildProgram.Outcome {
    try await ChildProgram.run(["openssl"] + arguments, in: folder)
  }

  /// Creates a self-signed certificate for one name.
  package static func makeCertificate(subject: String, name: String, chain: String, key: String) async throws {
    let outcome = try await run([
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", chain,
      "-subj", subject, "-addext", "subjectAltName=DNS:\(name)",
    ])
    guard outcome.status == 0 else { throw Failure(output: outcome.output) }
  }

  /// Runs `openssl s_server` on a free port while `body` runs.
  ///
  /// - Parameter arguments: The arguments in addition to the port.
  package static func serve(_ arguments: [String], _ body: (MockServer.Endpoint) async throws -> Void) async throws {
    let command = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www"] + arguments
    // It prints "ACCEPT 127.0.0.1:40123" when it listens.
    try await ChildProgram.serve(command, readyAt: "ACCEPT ") { address in
      guard let endpoint = MockServer.Endpoint(address) else { throw Failure(output: String(address)) }
      try await body(endpoint)
    }
  }
}

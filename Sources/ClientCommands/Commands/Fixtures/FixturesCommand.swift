import ArgumentParser
import APNSMockDevices
import MockAPNS
import HTTPTypes
import APNSMockNotation

/// `apns-mock fixtures`
struct FixturesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fixtures", abstract: "Check, load and save files with apps, devices and channels.",
    subcommands: [FixturesLint.self, FixturesLoad.self, FixturesSave.self, FixturesSample.self])
}

/// `apns-mock fixtures lint`
struct FixturesLint: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint", abstract: "Validate fixture files.",
    discussion: """
      Reports all problems of all files on standard error as FILE:LINE:COLUMN: … The files are checked together, as if \
      they were loaded together. Exit code 2 if there is a problem.
      """)

  @Argument(
    help: ArgumentHelp("Fixture files, YAML or JSON; - for standard input.", valueName: "file"), completion: .yamlOrJSON
  )
  var files: [String]

  @OptionGroup var output: OutputFlags

  func run() throws {
    let reader = FixtureReader(defaults: FixtureDefaults(MockServer.Configuration()))
    var problems: [FileProblem] = []
    var contents = FixtureReader.Contents()
    do throws(FileFailure) {
      var documents: [FixtureDocument] = []
      for file in files { documents.append(try FixtureDocument(path: file == "-" ? "/dev/stdin" : file)) }
      contents = try reader.lint(documents, maxDevices: MockServer.Configuration().maxDevices)
    } catch {
      problems = error.problems
    }
    let summary =
      problems.isEmpty ? "valid: \(contents.text)" : problems.count.counted("problem")
    output.print(text: summary) { writer in
      writer.member("valid", problems.isEmpty)
      writer.arrayMember("problems") { problems.write(to: &$0) }
      contents.write(to: &writer)
    }
    guard !problems.isEmpty else { return }
    if !output.json { for problem in problems { StandardStream.error.line(problem.text()) } }
    throw ExitCode(ExitStatus.usage.rawValue)
  }
}

extension FixtureReader.Contents {
  /// `1 app, 2 devices, 0 channels`.
  var text: String {
    [(apps.count, "app"), (devices, "device"), (channels.count, "channel")]
      .map { $0.counted($1) }.joined(separator: ", ")
  }

  fileprivate func write(to writer: inout JSONWriter) {
    writer.member("apps", apps.count)
    writer.member("devices", devices)
    writer.member("channels", channels.count)
  }
}

/// `apns-mock fixtures load`
struct FixturesLoad: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load", abstract: "Load fixtures into a running server, all or none.",
    discussion: """
      Devices are added, or replaced by id; apps and channels likewise. A reset removes them, unless the server was \
      started with the file: apns-mock serve --fixtures FILE.
      """)

  @Argument(help: .value("file", "A fixture file, YAML or JSON; - for standard input."), completion: .yamlOrJSON)
  var file: String

  @OptionGroup var flags: AdminFlags

  /// The maximum size of the file, which is that of a request's body.
  private static let limit = 64 << 20

  func run() async throws {
    let bytes = try Self.bytes(of: file)
    let isJSON = bytes.first { !" \t\r\n".utf8.contains($0) } == UInt8(ascii: "{")
    let response = try await flags.request(
      .put, "/fixtures", body: bytes, type: isJSON ? "application/json" : "application/yaml")
    _ = try response.succeeded(about: file == "-" ? "stdin" : file)
    let loaded = try response.decoded(Loaded.self)
    let counts = [(loaded.apps, "app"), (loaded.devices, "device"), (loaded.channels, "channel")]
    flags.print(response, text: counts.map { $0.counted($1) }.joined(separator: ", ") + " loaded")
  }

  private static func bytes(of path: String) throws -> [UInt8] {
    do throws(FileError) {
      return path == "-"
        ? try WholeFile.standardInput(limit: limit) : try WholeFile(path: path).bytes(limit: limit)
    } catch {
      throw CommandFailure(
        .usage, "\(error); files over \(limit >> 20) MiB are loaded at the start: apns-mock serve --fixtures FILE")
    }
  }

  private struct Loaded: Decodable {
    var apps: Int
    var devices: Int
    var channels: Int
  }
}

/// `apns-mock fixtures save`
struct FixturesSave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "save", abstract: "Write the present apps, devices and channels as fixtures.",
    discussion: """
      Writes YAML, or JSON with --json or for a file whose name ends in .json. More than fixtures load accepts as YAML must \
      be JSON. Stored and shown pushes are not part of it.
      """)

  @Argument(help: .value("file", "The file to write. (default: standard output)"), completion: .yamlOrJSON)
  var file: String?

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let isJSON = flags.output.json || file?.hasSuffix(".json") == true
    let replacement = try file.map { try Files.replacement(of: $0, isPrivate: false) }
    func write(_ bytes: [UInt8]) throws -> Bool {
      guard let replacement else { return StandardStream.output.write(bytes) }
      try Files.writing { () throws(FileError) in try replacement.append(bytes) }
      return true
    }
    var json: [UInt8] = []
    try await flags.client().stream("/api/v1/fixtures") { bytes in
      guard !isJSON else { return try write(bytes) }
      json += bytes
      guard json.count <= FixtureReader.localFile.length else { throw Self.tooLargeForYAML }
      return true
    }
    if !isJSON { _ = try write(try Self.yaml(of: json)) }
    guard let replacement, let file else { return }
    try Files.writing { () throws(FileError) in try replacement.commit() }
    StandardStream.error.line("saved to \(file)")
  }

  private static let tooLargeForYAML = CommandFailure(
    .usage, "too many fixtures for YAML: write JSON, to a file whose name ends in .json")

  /// Returns fixtures as YAML that `fixtures load` accepts.
  ///
  /// - Throws: `CommandFailure` if they are too large.
  private static func yaml(of json: [UInt8]) throws -> [UInt8] {
    let yaml = Array(try JSONNodeReader.document(json).yaml.utf8)
    do throws(YAMLError) {
      let limits = FixtureReader.clientText
      _ = try YAMLNode.parse(try YAMLNode.text(yaml, limits: limits), limits: limits)
    } catch {
      throw tooLargeForYAML
    }
    return yaml
  }
}

/// `apns-mock fixtures sample`
struct FixturesSample: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sample", abstract: "Print a commented fixture file.",
    discussion: "The file is valid input for serve --fixtures.")

  func run() { StandardStream.output.write(Array(FixtureSample.yaml.utf8)) }
}

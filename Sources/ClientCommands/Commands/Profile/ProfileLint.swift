import ArgumentParser
import APNSMockFaultModel
import APNSMockFaults
import MockAPNS
import APNSMockNotation

/// `apns-mock profile lint`
struct ProfileLint: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lint", abstract: "Validate profile files.",
    discussion: """
      Reports all problems of all files on standard error as FILE:LINE:COLUMN: … The files may extend each other. Exit \
      code 2 if a profile is invalid, 0 if there are only warnings.
      """)

  @Argument(help: ArgumentHelp("Profile files; - for standard input.", valueName: "file"), completion: .yamlOrJSON)
  var files: [String]

  @OptionGroup var library: LibraryFlags
  @OptionGroup var output: OutputFlags

  func run() throws {
    let reports = Self.reports(files, library.library())
    for report in reports {
      output.print(text: report.text, report.write)
      if !output.json { for problem in report.problems { StandardStream.error.line(problem.text()) } }
    }
    guard reports.allSatisfy(\.isValid) else { throw ExitCode(ExitStatus.usage.rawValue) }
  }

  /// The problems of one file.
  struct Report {
    let file: String
    let problems: [ProfileProblem]

    /// Whether the profile has no errors.
    var isValid: Bool { count(.error) == 0 }

    private func count(_ severity: ProfileProblem.Severity) -> Int { problems.count { $0.severity == severity } }

    /// `my.yaml: 2 errors, 1 warning`.
    var text: String {
      let counts = [(count(.error), "error"), (count(.warning), "warning")].filter { $0.0 > 0 }
      let parts = counts.map { $0.counted($1) }
      return "\(file): \(parts.isEmpty ? "valid" : parts.joined(separator: ", "))"
    }

    func write(to writer: inout JSONWriter) {
      writer.member("file", file)
      writer.member("valid", isValid)
      writer.arrayMember("problems") { writer in
        for problem in problems { problem.write(to: &writer) }
      }
    }
  }

  /// Validates files, each of which may extend another one of them.
  static func reports(_ files: [String], _ library: ProfileLibrary) -> [Report] {
    let sources = files.map { file in (file: file, source: Result { try source(file) }) }
    var library = library
    var waiting = sources.compactMap { try? $0.source.get() }
    while true {
      let before = waiting.count
      waiting.removeAll { source in
        guard let loaded = try? library.profile(of: source),
          let next = try? library.adding(name: loaded.profile.name, text: source.text)
        else { return false }
        library = next.library
        return true
      }
      if waiting.count == before || waiting.isEmpty { break }
    }
    return sources.map { file, source in
      do {
        return Report(file: file, problems: library.problems(in: try source.get()))
      } catch {
        return Report(file: file, problems: (error as? ProfileFailure)?.problems ?? [])
      }
    }
  }

  private static func source(_ file: String) throws -> ProfileSource {
    guard file == "-" else { return try ProfileLibrary.file(file) }
    return ProfileSource(name: "stdin", text: try Files.text(of: file), origin: .inline)
  }
}

/// `apns-mock profile simulate`
struct ProfileSimulate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Simulate pushes against a profile, without a network, and count the results.",
    discussion: """
      Push n is sent after n/RATE seconds of a simulated clock, on connection n modulo the number of connections. \
      Connections that end are opened again; nothing is sent twice. A real run with the same seed and order has the \
      same numbers. For example: apns-mock profile simulate 'chaos-mix?intensity=0.3' --pushes 10000 --seed 7
      """)

  @Argument(help: .value("profile", "A profile's name with parameters, or a file."), completion: .profile)
  var profile: String

  @Option(name: .long, help: .value("number", "The number of pushes."))
  var pushes = 10_000

  @Option(
    name: .long, help: .value("number", "The seed, for repeatable results. (default: the profile's own, else random)"))
  var seed: UInt64?

  @Option(name: .long, help: .value("number", "The number of device tokens."))
  var devices = 1000

  @Option(name: .long, help: .value("number", "The number of connections."))
  var connections = 10

  @Option(name: .long, help: .value("number", "Pushes per second."))
  var rate = 100.0

  @Option(name: .long, help: .value("topic", "The apns-topic of the pushes."))
  var topic = "com.example.app"

  @Option(name: .long, help: .value("push-type", "The apns-push-type of the pushes."), completion: .pushType)
  var pushType = "alert"

  @OptionGroup var library: LibraryFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    for (flag, value, limit) in [
      ("--pushes", pushes, 10_000_000), ("--devices", devices, 1_000_000), ("--connections", connections, 100_000),
    ] {
      guard (1...limit).contains(value) else { throw ValidationError("\(flag) must be 1 to \(limit)") }
    }
    guard rate > 0, rate.isFinite else { throw ValidationError("--rate must be greater than 0") }
  }

  func run() throws {
    let profile = try library.loaded(try ProfileReference(argument: profile)).loaded.profile
    var load = Simulation.Load()
    load.pushes = pushes
    load.devices = devices
    load.connections = connections
    load.rate = rate
    load.topic = topic
    load.pushType = pushType
    let chosen = seed ?? profile.seed ?? UInt64.random(in: 1...999_999)
    let result = Simulation(profile: profile, seed: chosen, load: load).run()
    guard output.json else { return StandardStream.output.line(result.text) }
    var writer = JSONWriter()
    result.write(to: &writer)
    output.print(json: writer.bytes)
  }
}

/// `apns-mock profile schema`
struct ProfileSchemaShow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema",
    abstract: "Print the JSON Schema of profile files, for completion and validation in editors.")

  @OptionGroup var output: OutputFlags

  func run() {
    let schema = Array(ProfileSchema.text.utf8)
    output.print(json: output.json ? schema : JSONLayout.indented(schema))
  }
}

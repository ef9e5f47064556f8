import ArgumentParser
import APNSMockFaults
import HTTPTypes
import APNSMockNotation

/// `apns-mock profile use`
struct ProfileUse: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "use", abstract: "Activate a fault profile.",
    discussion: """
      The profile applies from the next push. For example: apns-mock profile use 'flaky-503?rate=0.4' --ttl 5m. A file is \
      uploaded to the server first. With --scope or --run, the profile applies only to those pushes, in addition to the \
      active profile.
      """)

  @Argument(
    help: .value("profile", "A profile's name with parameters, such as 'flaky-503?rate=0.4', or a file."),
    completion: .profile)
  var profile: String

  @Option(
    name: .long,
    help: .value("number", "The seed, for repeatable faults. (default: the profile's own, else the server's)"))
  var seed: UInt64?

  @Option(
    name: .long, help: .value("duration", "Deactivate the profile after this time, such as 30s or 5m. (default: never)")
  )
  var ttl: String?

  @OptionGroup var binding: BindingFlags
  @OptionGroup var flags: AdminFlags

  func validate() throws { try TimeToLive.check(ttl) }

  func run() async throws {
    var reference = try ProfileReference(argument: profile)
    if case .file(let path) = reference.place { reference.place = .name(try await upload(path)) }
    let body = JSONWriter.object { writer in
      writer.member("name", reference.description)
      if let seed { writer.member("seed", seed) }
      if let ttl { writer.member("ttl", ttl) }
      for (name, value) in binding.parameters { writer.member(name, value) }
    }
    try flags.print(
      active: try await flags.request(.put, "/profile", body: body), changed: (reference.description, binding))
  }

  /// Uploads a profile file to the server.
  ///
  /// - Returns: The profile's name.
  private func upload(_ path: String) async throws -> String {
    let source = try ProfileFailure.reporting { () throws(ProfileFailure) in try ProfileLibrary.file(path) }
    // The server validates the file: it knows the profiles that this one may extend.
    let declared = (try? YAMLNode.parse(source.text))?["name"]?.text
    let name = declared ?? source.name
    let response = try await flags.request(
      .put, "/profiles/\(name.percentEncoded)", body: Array(source.text.utf8), type: "application/yaml")
    _ = try response.succeeded(about: path)
    return name
  }
}

/// `apns-mock profile off`
struct ProfileOff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "off", abstract: "Deactivate the fault profile; keep added rules.",
    discussion: "With --scope or --run, deactivate the profile that was activated with the same flags.")

  @OptionGroup var binding: BindingFlags
  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let query = binding.parameters.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
    let response = try await flags.request(.delete, query.isEmpty ? "/profile" : "/profile?\(query)")
    try flags.print(active: response, changed: ("off", binding))
  }
}

/// The flags that limit a profile to some pushes.
struct BindingFlags: ParsableArguments {
  @Option(help: .value("query", "Only the pushes that match this query, such as topic:com.example.w3."))
  var scope: String?

  @Option(help: .value("id", "Only the pushes of this run, until it ends."))
  var run: String?

  /// The names and values for the admin API.
  var parameters: [(String, String)] {
    [("scope", scope), ("run", run)].compactMap { name, value in value.map { (name, $0) } }
  }

  /// The pushes that the profile applies to; nil for all.
  var text: String? {
    let parts = [scope, run.map { "run \($0)" }].compactMap(\.self)
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}

/// `apns-mock profile set`
struct ProfileSet: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Set parameters of the active fault profile.",
    discussion: "For example: apns-mock profile set rate=0.4. Rules that do not change keep their counters.")

  @Argument(help: ArgumentHelp("Parameters with their values.", valueName: "parameter=value"))
  var parameters: [String]

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let values = try Self.values(parameters)
    let body = JSONWriter.object { writer in
      for (name, value) in values { writer.member(name, value) }
    }
    try flags.print(active: try await flags.request(.patch, "/profile/params", body: body))
  }

  /// Parses arguments of the form `parameter=value`.
  ///
  /// - Throws: `CommandFailure` for other arguments and for a parameter that is given twice.
  static func values(_ arguments: [String]) throws -> [(String, String)] {
    var known: Set<String> = []
    return try arguments.map { argument in
      let sides = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard sides.count == 2, !sides[0].isEmpty else {
        throw CommandFailure(.usage, "\"\(argument)\" is not of the form PARAMETER=VALUE, as in rate=0.4")
      }
      guard known.insert(sides[0]).inserted else {
        throw CommandFailure(.usage, "\(sides[0]) is set twice: specify one value")
      }
      return (sides[0], sides[1])
    }
  }
}

/// The argument of `--ttl`.
enum TimeToLive {
  /// Validates the argument.
  ///
  /// - Throws: `ValidationError` if it is not a positive duration.
  static func check(_ text: String?) throws {
    guard let text else { return }
    do throws(InvalidSettingValue) {
      _ = try Value.duration(text, isPositive: true)
    } catch {
      throw ValidationError("--ttl: \"\(text)\" is invalid: expected \(error.allowed)")
    }
  }
}

extension AdminFlags {
  /// Prints the active profile, after what has changed for a part of the pushes.
  fileprivate func print(
    active response: AdminClient.Response, changed: (profile: String, binding: BindingFlags)? = nil
  ) throws {
    let active = try response.decoded(ActiveProfile.self).text
    let part = changed.flatMap { changed in changed.binding.text.map { "\($0): \(changed.profile)\nother pushes: " } }
    print(response, text: (part ?? "") + active)
  }
}

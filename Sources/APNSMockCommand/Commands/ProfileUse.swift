import ArgumentParser
import Faults
import NIOHTTP1
import Notation
import Yams

/// `apns-mock profile use`
struct ProfileUse: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "use", abstract: "Put a fault profile in force, from the next push on.",
    discussion: "For example: apns-mock profile use 'flaky-503?rate=0.4' --ttl 5m. A file is sent to the server first.")

  @Argument(help: "A profile's name with its knobs, such as 'flaky-503?rate=0.4', or a file.")
  var profile: String

  @Option(name: .long, help: "Makes its draws repeatable. (default: the server's, or the profile's own)")
  var seed: UInt64?

  @Option(name: .long, help: "How long it is in force, as 30s or 5m. (default: until another one is)")
  var ttl: String?

  @OptionGroup var flags: AdminFlags

  func validate() throws { try TimeToLive.check(ttl) }

  func run() async throws {
    var reference = try ProfileReference(argument: profile)
    if case .file(let path) = reference.place { reference.place = .name(try await sent(path)) }
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("name", reference.description)
      if let seed { writer.member("seed", seed) }
      if let ttl { writer.member("ttl", ttl) }
    }
    try flags.print(inForce: try await flags.ask(.PUT, "/profile", body: writer.bytes))
  }

  /// Sends a file to the server, which has it from then on.
  ///
  /// - Returns: the profile's name.
  private func sent(_ path: String) async throws -> String {
    let source = try ProfileFailure.told { () throws(ProfileFailure) in try ProfileLibrary.file(path) }
    // What is wrong in it, the server says better: it knows the profiles that this one may extend.
    let declared = (try? compose(yaml: source.text))?.mapping?["name"]?.scalar?.string
    let name = declared ?? source.name
    let answer = try await flags.ask(
      .PUT, "/profiles/\(name.percentEncoded)", body: Array(source.text.utf8), type: "application/yaml")
    _ = try answer.succeeded(about: path)
    return name
  }
}

/// `apns-mock profile off`
struct ProfileOff: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "off", abstract: "Take the fault profile out of force; rules beside it stay.")

  @OptionGroup var flags: AdminFlags

  func run() async throws { try flags.print(inForce: try await flags.ask(.DELETE, "/profile")) }
}

/// `apns-mock profile set`
struct ProfileSet: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set", abstract: "Turn knobs of the fault profile in force.",
    discussion: "For example: apns-mock profile set rate=0.4. Counters of rules that stay as they are go on.")

  @Argument(help: ArgumentHelp("Knobs with their values.", valueName: "knob=value"))
  var knobs: [String]

  @OptionGroup var flags: AdminFlags

  func run() async throws {
    let values = try Self.values(knobs)
    var writer = JSONWriter()
    writer.object { writer in
      for (knob, value) in values { writer.member(knob, value) }
    }
    try flags.print(inForce: try await flags.ask(.PATCH, "/profile/params", body: writer.bytes))
  }

  /// - Throws: `CommandFailure` for what is no knob with its value, and for a knob that comes twice.
  static func values(_ arguments: [String]) throws -> [(String, String)] {
    var known: Set<String> = []
    return try arguments.map { argument in
      let sides = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard sides.count == 2, !sides[0].isEmpty else {
        throw CommandFailure(.usage, "\"\(argument)\" turns no knob: write KNOB=VALUE, as in rate=0.4")
      }
      guard known.insert(sides[0]).inserted else {
        throw CommandFailure(.usage, "\(sides[0]) is turned twice: give it one value")
      }
      return (sides[0], sides[1])
    }
  }
}

/// A duration after which something goes by itself.
enum TimeToLive {
  /// - Throws: `ValidationError` for what is none.
  static func check(_ text: String?) throws {
    guard let text else { return }
    do throws(BadValue) {
      _ = try Value.duration(text, isPositive: true)
    } catch {
      throw ValidationError("--ttl: \"\(text)\" cannot be used: it takes \(error.allowed)")
    }
  }
}

extension AdminFlags {
  /// Prints which profile is in force now.
  fileprivate func print(inForce answer: AdminClient.Answer) throws {
    print(answer, text: try answer.decoded(ProfileInForce.self).text)
  }
}

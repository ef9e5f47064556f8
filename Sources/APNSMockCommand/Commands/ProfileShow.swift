import ArgumentParser
import Faults
import NIOHTTP1
import Notation

/// `apns-mock profile show`
struct ProfileShow: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a fault profile: what it is for, its knobs, its text.",
    discussion: "A file is read here; a name is asked of the server, or of this program where no server is running.")

  @Argument(help: "A profile's name, or a file. (default: the one in force, with what its rules did)")
  var profile: String?

  @Flag(name: .long, help: "Print its text alone, to be copied into a file.")
  var source = false

  @OptionGroup var library: LibraryFlags
  @OptionGroup var flags: AdminFlags

  func validate() throws {
    guard profile != nil || !source else { throw ValidationError("--source goes with the name of a profile") }
  }

  func run() async throws {
    guard let profile else { return try await showInForce() }
    let reference = try ProfileReference(argument: profile)
    guard reference.parameters.isEmpty else {
      throw CommandFailure(.usage, "PROFILE: show takes a name or a file alone, without knobs")
    }
    let answer = try await told(reference) ?? answerByItself(reference)
    let shown = try answer.decoded(ListedProfile.self)
    if source {
      StandardStream.output.write(Array((shown.source ?? "").utf8))
      return
    }
    flags.print(answer, text: shown.text)
    for problem in shown.problems ?? [] { StandardStream.error.line(problem.description.onOneLine) }
  }

  /// What the server says of a profile; nil for a file, and where no server is.
  private func told(_ reference: ProfileReference) async throws -> AdminClient.Answer? {
    guard case .name(let name) = reference.place, library.profiles == nil else { return nil }
    return try await NeighbouringServer(flags.server, environment: Environment.variables)
      .request(.GET, "/api/v1/profiles/\(name.percentEncoded)")
  }

  private func showInForce() async throws {
    let answer = try await flags.ask(.GET, "/profile")
    let profile = try answer.decoded(ProfileInForce.self)
    guard !flags.output.json else { return flags.output.print(json: answer.body) }
    StandardStream.output.line(profile.text)
    if !profile.rules.isEmpty { RuleInForce.table(profile.rules).print() }
  }

  /// What a server that has nothing but this profile would say of it.
  private func answerByItself(_ reference: ProfileReference) throws -> AdminClient.Answer {
    let (text, loaded) = try library.loaded(reference)
    var writer = JSONWriter()
    writer.object { writer in
      writer.member("name", loaded.profile.name)
      writer.member("summary", loaded.profile.summary)
      writer.member("origin", text.origin.text)
      writer.member("active", false)
      writer.arrayMember("params") { loaded.profile.parameters.write(to: &$0) }
      writer.member("source", text.text)
      writer.name("profile")
      loaded.profile.write(to: &writer)
      writer.arrayMember("problems") { loaded.warnings.write(to: &$0) }
    }
    return AdminClient.Answer(status: 200, body: writer.bytes)
  }
}

extension ProfileReference {
  /// Reads an argument of a command.
  ///
  /// - Throws: `CommandFailure`.
  init(argument: String) throws {
    do throws(BadValue) {
      try self.init(argument)
    } catch {
      throw CommandFailure(.usage, SettingError(error, from: "PROFILE").description)
    }
  }
}

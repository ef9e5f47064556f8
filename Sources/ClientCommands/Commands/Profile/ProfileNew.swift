import ArgumentParser
import APNSMockFaults
import APNSMockNotation
import APNSMockPlatformLibc
import MockAPNS

/// `apns-mock profile new`
struct ProfileNew: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Write a commented fault profile to start from.",
    discussion: """
      Asks on a terminal what no flag says: what happens, to which pushes, and how often. Elsewhere, --fault is required. For \
      example: apns-mock profile new sale --fault 429 --pushes 'topic:com.example.*' --often first:3 writes sale.yaml.
      """)

  @Argument(help: .value("name", "The name of the profile, and of its file without .yaml."))
  var name: String

  @Option(
    name: .long, help: .value("fault", "What happens: \(ProfileNew.faults.map(\.name).joined(separator: ", "))."),
    completion: .list(ProfileNew.faults.map(\.name)))
  var fault: String?

  @Option(
    name: .long, help: .value("query", "The pushes to which it happens, such as topic:com.example.*. (default: all)"))
  var pushes: String?

  @Option(
    name: .long,
    help: .value(
      "rate",
      """
      How often: the share of the pushes such as 0.2, first:N for the first N pushes, attempts:N for the first N attempts of \
      each push, every:N for every N-th push, or always. (default: 0.2)
      """))
  var often: String?

  @Option(
    name: .long, help: .value("file", "The file to write, or - for standard output. (default: NAME.yaml)"),
    completion: .file())
  var output: String?

  /// A fault to choose.
  fileprivate struct Fault {
    let name: String
    let meaning: String
    /// The injection point and the action in YAML.
    let action: String
  }

  fileprivate static let faults = [
    Fault(name: "503", meaning: "503 ServiceUnavailable", action: respond("status: 503, reason: ServiceUnavailable")),
    Fault(
      name: "retry-after", meaning: "503 with Retry-After: 30",
      action: respond("status: 503, reason: ServiceUnavailable, retry_after: 30s")),
    Fault(name: "429", meaning: "429 TooManyRequests", action: respond("status: 429, reason: TooManyRequests")),
    Fault(name: "410", meaning: "410 Unregistered", action: respond("status: 410, reason: Unregistered")),
    Fault(name: "delay", meaning: "a response two seconds late", action: "do: {delay: {fixed: 2s}}"),
    Fault(
      name: "lost", meaning: "acceptance, but no response",
      action: "at: response\n    do: {lose_answer: {end_with: reset_stream}}"),
    Fault(name: "reset", meaning: "a reset of the connection", action: "do: {reset_connection: {}}"),
    Fault(name: "goaway", meaning: "GOAWAY", action: "do: {goaway: {}}"),
  ]

  private static func respond(_ response: String) -> String { "do: {respond: {\(response)}}" }

  func run() throws {
    let path = output ?? name + ".yaml"
    // Before the questions.
    if let problem = ProfileName.problem(with: name) { throw CommandFailure(.usage, "\(name.shortened): \(problem)") }
    if path != "-", WholeFile(path: path).exists {
      throw CommandFailure(.usage, "\(path) exists: choose another name, or another file with --output FILE")
    }
    let text = try makeProfile()
    let source = ProfileSource(name: name, text: text, origin: .inline)
    _ = try ProfileFailure.reporting { () throws(ProfileFailure) in
      try ProfileLibrary().profile(of: source, parameters: [:])
    }
    guard path != "-" else {
      StandardStream.output.write(Array(text.utf8))
      return
    }
    let file = try Files.replacement(of: path, isPrivate: false)
    try Files.writing { () throws(FileError) in
      try file.append(Array(text.utf8))
      try file.commit()
    }
    StandardStream.output.line(path)
  }

  private func makeProfile() throws -> String {
    let list = Self.faults.map { "\($0.name) (\($0.meaning))" }.joined(separator: ", ")
    guard fault != nil || Self.isOnTerminal else { throw CommandFailure(.usage, "--fault is missing: \(list)") }
    let fault = try value(of: fault, "What happens? \(list).", default: "503") { chosen in
      guard let fault = Self.faults.first(where: { $0.name == chosen }) else {
        let guess = Spelling.suggestion(for: chosen, among: Self.faults.map(\.name))
        throw CommandFailure(.usage, "--fault: unknown fault \"\(chosen)\". \(guess)The faults are \(list)")
      }
      return fault
    }
    let query = try value(
      of: pushes, "To which pushes? A query such as topic:com.example.*, or all.", default: "all", Self.checkedQuery)
    let trigger = try value(
      of: often, "How often? A share such as 0.2, first:N, attempts:N, every:N or always.", default: "0.2",
      Trigger.init)
    return try text(fault, query == "all" ? nil : query, trigger)
  }

  private static var isOnTerminal: Bool { isatty(STDIN_FILENO) != 0 && StandardStream.error.isTerminal }

  /// Returns the value of a flag; without the flag, on a terminal, the answer to a question, which is asked again after an
  /// invalid answer.
  ///
  /// - Throws: `CommandFailure` for an invalid flag, or if the input ends.
  private func value<Value>(
    of flag: String?, _ question: String, default standard: String, _ parse: (String) throws -> Value
  ) throws -> Value {
    guard flag == nil, Self.isOnTerminal else { return try parse(flag ?? standard) }
    while true {
      StandardStream.error.write(Array("\(question) [\(standard)] ".utf8))
      guard let answer = readLine()?.trimmed else {
        throw CommandFailure(.usage, "the input ended before the questions were answered; nothing was written")
      }
      do {
        return try parse(answer.isEmpty ? standard : answer)
      } catch let failure as CommandFailure {
        for line in failure.lines { StandardStream.error.line(line) }
      }
    }
  }

  /// Returns the query, if rules can have it as their condition.
  ///
  /// - Throws: `CommandFailure`.
  private static func checkedQuery(_ query: String) throws -> String {
    if query == "all" { return query }
    let rule = "{when: {q: \(quoted(query))}, do: {close: {}}}"
    _ = try ProfileFailure.reporting { () throws(ProfileFailure) in
      try ProfileLibrary().profile(of: ProfileSource(name: "--pushes", text: "rules: [\(rule)]", origin: .inline))
    }
    return query
  }

  /// Returns a text in quotation marks for YAML, of which JSON's strings are a part.
  private static func quoted(_ text: String) -> String {
    var writer = JSONWriter()
    writer.string(text)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  private func text(_ fault: Fault, _ query: String?, _ trigger: Trigger) throws -> String {
    let file = output.flatMap { $0 == "-" ? nil : $0 } ?? "\(name).yaml"
    // Without a folder it would be the name of a built-in profile.
    let reference = file.contains("/") ? file : "./\(file)"
    var lines = [
      "# Check this file: apns-mock profile lint \(file)",
      "# Try it without a server: apns-mock profile simulate \(file)",
      "# Use it: apns-mock serve --profile \(reference), or in a running server: apns-mock profile use \(reference)",
      "name: \(Self.quoted(name))",
      "summary: \(Self.quoted("\(fault.meaning), \(trigger.meaning)"))",
    ]
    if let parameter = trigger.parameter {
      lines += [
        "params:", "  # Can be changed when the profile is selected: '\(name)?\(parameter.use)'", "  \(parameter.yaml)",
      ]
    }
    lines += ["rules:", "  - name: \(Self.quoted(fault.name))"]
    lines += ["    # Which pushes: a query as of apns-mock ls. Without `when`, all pushes."]
    lines += [query.map { "    when: {q: \(Self.quoted($0))}" } ?? "    # when: {q: \"topic:com.example.*\"}"]
    lines += ["    # How often: \(trigger.meaning). Without `trigger`, always."]
    lines += [trigger.yaml.map { "    trigger: {\($0)}" } ?? "    # trigger: {probability: 0.2, draw_per: push}"]
    lines += ["    # What happens: \(fault.meaning)", "    \(fault.action)"]
    return lines.joined(separator: "\n") + "\n"
  }

  /// How often the fault occurs.
  private struct Trigger {
    /// The keys of the trigger in YAML; nil to fire always.
    var yaml: String?
    var meaning = ""
    var parameter: (yaml: String, use: String)?

    /// Parses a share, `first:N`, `attempts:N`, `every:N` or `always`.
    ///
    /// - Throws: `CommandFailure`.
    init(_ text: String) throws {
      let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
      let number = parts.count == 2 ? (try? Value.whole(parts[1], in: 1...1_000_000)) : nil
      switch (parts[0], number) {
      case ("always", nil) where parts.count == 1: meaning = "for each push"
      case ("first", let number?): (yaml, meaning) = ("first: \(number)", "for the first \(number) pushes")
      case ("attempts", let number?):
        (yaml, meaning) = ("first: \(number), times_per: push", "for the first \(number) attempts of each push")
      case ("every", let number?): (yaml, meaning) = ("every: \(number)", "for one of \(number) pushes")
      default:
        guard let share = WrittenNumber.value(text), (0...1).contains(share) else {
          let guess = WrittenNumber.share(text).map { "did you mean \($0)? " } ?? ""
          throw CommandFailure(
            .usage,
            "--often: \"\(text)\" is invalid: \(guess)expected a number in 0..1, first:N, attempts:N, every:N or always"
          )
        }
        yaml = "probability: \"${rate}\", draw_per: push"
        meaning = "for some of the pushes"
        parameter = ("rate: {type: probability, default: \(text), help: share of the pushes}", "rate=0.5")
      }
    }
  }
}

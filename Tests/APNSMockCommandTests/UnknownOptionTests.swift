import APNSMockClientCommands
import Testing

@testable import APNSMockCommand

/// Advice about options that a command does not have. The last option of each row is the unknown one.
@Suite struct UnknownOptionTests {
  private static func message(for line: String) -> String? {
    let arguments = line.split(separator: " ").map(String.init)
    let option = arguments.last { $0.hasPrefix("-") && $0 != "--" }?.prefix { $0 != "=" } ?? ""
    // What the parser suggests is left out.
    let message = "Error: Unknown option '\(option)'. Did you mean '--wrong'?\nUsage: apns-mock"
    return UnknownOption(in: message, arguments: arguments, of: APNSMock.self)?.message(message)
  }

  @Test(arguments: [
    // curl, openssl and provider libraries.
    ("send ab --cacert x", "--ca"), ("send ab --CAfile x", "--ca"), ("send ab -cacert x", "--ca"),
    ("send ab --ca-cert=x", "--ca"), ("send ab --kid x", "--key-id"), ("send ab --keyId x", "--key-id"),
    ("send ab --key-file x", "--key"), ("send ab --p8 x", "--key"), ("send ab --authkey x", "--key"),
    ("send ab --private-key x", "--key"), ("send ab --certificate x", "--cert"), ("send ab --p12 x", "--cert"),
    ("send ab --data x", "--payload"), ("send ab --body x", "--payload"), ("send ab -d x", "--payload"),
    ("send ab --data-binary x", "--payload"), ("send ab --message x", "--payload"), ("send ab --team x", "--team-id"),
    ("send ab --apns-topic x", "--topic"), ("send ab --bundle-id x", "--topic"), ("send ab --type x", "--push-type"),
    ("send ab --apns-push-type x", "--push-type"), ("send ab --apns-priority 5", "--priority"),
    ("send ab --ttl 5", "--expiration"), ("send ab --apns-expiration 5", "--expiration"),
    ("send ab --host x", "--apns"), ("send ab --port 99", "--apns 127.0.0.1:99"),
    ("send ab -p 99", "--apns 127.0.0.1:99"),
    ("doctor --cacert x", "--ca"), ("doctor --kid x", "--key-id"), ("compare --cert x", "--certificate"),
    ("compare --cacert x", "--upstream-ca"), ("key add a --kid x", "--key-id"),
    // Other servers and tools.
    ("ls --port 99", "--admin 127.0.0.1:99"), ("ls --url http://x", "--admin"), ("ls -n 5", "--limit"),
    ("ls -o json", "--json"), ("ls --user x", "--admin-token"), ("wait --max-time 5", "--timeout"),
    ("wait -n 5", "--count"),
    ("export -o x", "--output"), ("report a --html x", "--output"), ("rm --force", "--all"),
    ("serve --port 99", "--apns 127.0.0.1:99"), ("--port 99", "--apns 127.0.0.1:99"),
    ("serve --port x", "--apns HOST:PORT"),
    ("serve --admin-port 99", "--admin 127.0.0.1:99"), ("serve --db x", "--store"), ("serve --cacert x", "--client-ca"),
    ("serve --tls-cert x", "--certs"), ("serve --relay x", "--upstream"), ("serve --fault x", "--profile"),
    ("exec --verbose -- true", "--log-level"), ("profile use x --duration 5m", "--ttl"),
    // Misspelled.
    ("send ab --key_id x", "--key-id"), ("send ab --KEY-ID x", "--key-id"), ("serve --upstreams x", "--upstream"),
    ("wait --timeoutt 3", "--timeout"), ("serve --max-record 3", "--max-records"),
  ])
  func suggestsTheOption(_ line: String, _ option: String) throws {
    #expect(try #require(Self.message(for: line)).contains("'. Did you mean '\(option)'?\nUsage:"), "\(line)")
  }

  @Test(arguments: [
    ("send ab -H a:b", "Header fields have options of their own"),
    ("send --device-token ab", "without --: apns-mock send ab"),
    ("send ab --insecure", "'--ca FILE' trusts another CA"),
    ("send ab -k", "'--ca FILE' trusts another CA"), ("send ab --env sandbox", "--apns HOST:PORT"),
    ("send ab --http2", "omit it"), ("send ab --pass x", "openssl pkey"), ("tail -f", "omit it"),
    ("ls --follow", "apns-mock tail"), ("ls --topic com.x", "without --: topic:com.x"),
    ("wait --since=-5m", "without --: since:-5m"),
    ("profile use flaky-503 --rate 0.3", "'flaky-503?rate=0.3'"),
    ("profile use flaky-503 --rate", "'flaky-503?rate=VALUE'"),
    ("profile use flaky-503?rate=1 --streak 2", "'flaky-503?rate=1&streak=2'"),
    ("profile use mine --burst 3", "'mine?burst=3'"), ("profile simulate flaky-503 --streak 2", "'flaky-503?streak=2'"),
    ("serve --profile flaky-503 --rate 1", "'flaky-503?rate=1'"), ("profile set --rate 0.3", "without --: rate=0.3"),
  ])
  func advises(_ line: String, _ advice: String) throws {
    let message = try #require(Self.message(for: line))
    #expect(message.contains(advice) && !message.contains("Did you mean"), "\(message)")
  }

  @Test(arguments: [
    "profile off --rate 3", "send ab --wibble x", "ls --colour x", "serve --inspect", "clock show --since 5m",
    "serve --profile flaky-503 --inspect x", "get 1 --header x", "serve -d", "rule rm a --rate 1",
    "channel ls --topic x",
  ])
  func suggestsNothing(_ line: String) throws {
    #expect(try #require(Self.message(for: line)).contains("'\nUsage:"), "\(line)")
  }

  @Test func anUnknownOptionIsNamedBeforeAMissingArgument() {
    func message(_ arguments: [String]) -> String? {
      let text = "Error: Missing expected argument '<token>'\nHelp: x\nUsage: apns-mock"
      return UnknownOption(in: text, arguments: arguments, of: APNSMock.self)?.message(text)
    }
    #expect(
      message(["send", "--kid", "x"]) == "error: Unknown option '--kid'. Did you mean '--key-id'?\nUsage: apns-mock")
    #expect(message(["send", "--key-id", "x"]) == nil)
    #expect(message(["send", "--", "--kid"]) == nil)
  }
}

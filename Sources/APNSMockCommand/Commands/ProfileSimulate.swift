import ArgumentParser
import Faults
import Notation

/// `apns-mock profile simulate`
struct ProfileSimulate: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "simulate",
    abstract: "Simulate pushes against a profile, without a network, and count the results.",
    discussion: "For example: apns-mock profile simulate 'chaos-mix?intensity=0.3' --pushes 10000 --seed 7")

  @Argument(help: "A profile's name with parameters, or a file.")
  var profile: String

  @Option(name: .long, help: "The number of pushes.")
  var pushes = 10_000

  @Option(name: .long, help: "The seed, for repeatable results. (default: the profile's own, else random)")
  var seed: UInt64?

  @Option(name: .long, help: "The number of device tokens.")
  var devices = 1000

  @Option(name: .long, help: "The number of connections.")
  var connections = 10

  @Option(name: .long, help: "Pushes per second.")
  var rate = 100.0

  @Option(name: .long, help: "The apns-topic of the pushes.")
  var topic = "com.example.app"

  @Option(name: .long, help: "The apns-push-type of the pushes.")
  var pushType = "alert"

  @OptionGroup var library: LibraryFlags
  @OptionGroup var output: OutputFlags

  func validate() throws {
    for (flag, value, most) in [
      ("--pushes", pushes, 10_000_000), ("--devices", devices, 1_000_000), ("--connections", connections, 100_000),
    ] {
      guard (1...most).contains(value) else { throw ValidationError("\(flag) must be 1 to \(most)") }
    }
    guard rate > 0, rate.isFinite else { throw ValidationError("--rate must be greater than 0") }
  }

  func run() throws {
    let profile = try library.loaded(try ProfileReference(argument: profile)).loaded.profile
    var traffic = Simulation.Traffic()
    traffic.pushes = pushes
    traffic.devices = devices
    traffic.connections = connections
    traffic.rate = rate
    traffic.topic = topic
    traffic.pushType = pushType
    let chosen = seed ?? profile.seed ?? UInt64.random(in: 1...999_999)
    let result = Simulation(profile: profile, seed: chosen, traffic: traffic).run()
    guard output.json else { return StandardStream.output.line(result.text) }
    var writer = JSONWriter()
    result.write(to: &writer)
    output.print(json: writer.bytes)
  }
}

import ArgumentParser
import Notation

/// How a command prints its result: for people, or for programs.
struct OutputFlags: ParsableArguments {
  @Flag(name: .long, help: "Print JSON: one object, or one a line.")
  var json = false

  /// Prints a result to standard output: `text`, or with `--json` an object of these members.
  func print(text: String, _ members: (inout JSONWriter) -> Void) {
    guard json else { return StandardStream.output.line(text) }
    var writer = JSONWriter()
    writer.object(members)
    StandardStream.output.write(writer.bytes + [UInt8(ascii: "\n")])
  }
}

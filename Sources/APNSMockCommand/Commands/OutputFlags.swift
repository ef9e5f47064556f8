import ArgumentParser
import Notation

/// Selects the output format of a command.
struct OutputFlags: ParsableArguments {
  @Flag(name: .long, help: "Print JSON: one object, or one per line.")
  var json = false

  /// Prints a result to standard output: `text`, or with `--json` an object with these members.
  func print(text: String, _ members: (inout JSONWriter) -> Void) {
    guard json else { return StandardStream.output.line(text) }
    var writer = JSONWriter()
    writer.object(members)
    StandardStream.output.write(writer.bytes + [UInt8(ascii: "\n")])
  }
}

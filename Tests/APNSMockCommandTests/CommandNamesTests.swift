import ArgumentParser
import Testing

@testable import APNSMockCommand

/// A name that is made from a type's costs each start its time, whichever command is called.
@Suite struct CommandNamesTests {
  @Test func everyCommandSaysItsName() {
    var left: [any ParsableCommand.Type] = [APNSMock.self]
    var count = 0
    while let command = left.popLast() {
      #expect(command.configuration.commandName != nil, "\(command)")
      left += command.configuration.subcommands
      count += 1
    }
    #expect(count > 40)
  }
}

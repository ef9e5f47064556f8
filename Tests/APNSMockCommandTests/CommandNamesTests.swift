import ArgumentParser
import Testing

@testable import APNSMockCommand

/// Every command declares its name, because deriving a name from a type costs time at each start, for every command.
@Suite struct CommandNamesTests {
  @Test func everyCommandHasAnExplicitName() {
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

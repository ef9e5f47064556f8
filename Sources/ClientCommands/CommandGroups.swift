package import ArgumentParser

/// The commands of this module, in the groups and the order of the help.
package enum CommandGroups {
  /// The state of a running server.
  package static let serving: [any ParsableCommand.Type] = [
    ResetCommand.self, ClockCommand.self, HealthcheckCommand.self,
  ]
  package static let pushes: [any ParsableCommand.Type] = [
    SendCommand.self, ListCommand.self, GetCommand.self, TailCommand.self, WaitCommand.self, VerifyCommand.self,
    FindingsCommand.self, RunCommand.self, RemoveCommand.self, ExportCommand.self, ImportCommand.self,
    MergeCommand.self,
  ]
  package static let faults: [any ParsableCommand.Type] = [ProfileCommand.self, RuleCommand.self, FaultsCommand.self]
  package static let devices: [any ParsableCommand.Type] = [
    DeviceCommand.self, ChannelCommand.self, FixturesCommand.self,
  ]
  package static let tools: [any ParsableCommand.Type] = [
    EnvCommand.self, CertsCommand.self, KeyCommand.self, TokenCommand.self, DoctorCommand.self,
    CompareCommand.self,
  ]
}

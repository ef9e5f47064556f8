package import ArgumentParser

/// The commands of this module, in the order of the help.
package enum CommandGroups {
  /// Credentials and pushes.
  package static let pushes: [any ParsableCommand.Type] = [
    CertsCommand.self, KeyCommand.self, TokenCommand.self, SendCommand.self, ListCommand.self, GetCommand.self,
    TailCommand.self, WaitCommand.self, FindingsCommand.self, VerifyCommand.self, RemoveCommand.self,
    ExportCommand.self, ImportCommand.self, MergeCommand.self,
  ]

  /// The state of a server: settings of clients, faults, devices, time, health.
  package static let server: [any ParsableCommand.Type] = [
    EnvCommand.self, ProfileCommand.self, RuleCommand.self, DeviceCommand.self, ChannelCommand.self,
    FixturesCommand.self, FaultsCommand.self, HaltCommand.self, ResumeCommand.self, ResetCommand.self,
    ClockCommand.self, DoctorCommand.self, HealthcheckCommand.self,
  ]
}

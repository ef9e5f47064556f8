/// The text of a profile and its origin.
public struct ProfileSource: Sendable, Equatable {
  /// The origin of a profile's text.
  public enum Origin: Sendable, Equatable {
    /// Part of the program.
    case builtIn
    /// A file, by its path.
    case file(String)
    /// Uploaded to the running server.
    case sent
    /// Given in a request in place of a name.
    case inline

    /// The origin as shown in lists: `built-in`, the path of a file, `api` or `inline`.
    public var text: String {
      switch self {
      case .builtIn: "built-in"
      case .file(let path): path
      case .sent: "api"
      case .inline: "inline"
      }
    }
  }

  /// The profile's name, unless the text declares another.
  public let name: String
  /// The text in YAML.
  public let text: String
  /// The origin of the text.
  public let origin: Origin

  /// Creates a source.
  public init(name: String, text: String, origin: Origin) {
    self.name = name
    self.text = text
    self.origin = origin
  }

  /// The name of the source in problems: the path of a file, otherwise a name.
  var file: String {
    switch origin {
    case .file(let path): path
    case .builtIn: "built-in/\(name).yaml"
    case .sent, .inline: name
    }
  }
}

/// A profile that is ready to run, and its warnings.
public struct LoadedProfile: Sendable, Equatable {
  /// The profile, merged with its base profiles and with the values of its parameters substituted.
  public let profile: Profile
  /// The warnings, in the order of the file.
  public let warnings: [ProfileProblem]
}

/// The text of a profile, and where it comes from.
public struct ProfileSource: Sendable, Equatable {
  /// Where a text comes from.
  public enum Origin: Sendable, Equatable {
    /// It is part of the program.
    case builtIn
    /// A file, by its path.
    case file(String)
    /// Somebody sent it to the running server.
    case sent
    /// It was given in place of a name.
    case inline

    /// As lists show it: `built-in`, a file's path, `api` or `inline`.
    public var text: String {
      switch self {
      case .builtIn: "built-in"
      case .file(let path): path
      case .sent: "api"
      case .inline: "inline"
      }
    }
  }

  /// What the profile is called, unless its text says otherwise.
  public let name: String
  /// YAML.
  public let text: String
  /// Where it comes from.
  public let origin: Origin

  /// A text.
  public init(name: String, text: String, origin: Origin) {
    self.name = name
    self.text = text
    self.origin = origin
  }

  /// What problems call it: the path of a file, else a name.
  var file: String {
    switch origin {
    case .file(let path): path
    case .builtIn: "built-in/\(name).yaml"
    case .sent, .inline: name
    }
  }
}

/// A profile that can be run, and what somebody should look at.
public struct LoadedProfile: Sendable, Equatable {
  /// The profile, its knobs and base profiles worked in.
  public let profile: Profile
  /// What is odd about it, in the order of the file.
  public let warnings: [ProfileProblem]
}

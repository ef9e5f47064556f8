/// What to do about a provider token that the server does not take, by what it says of itself and the keys the server
/// trusts, as far as they are known.
struct KeyAdvice {
  let token: ReadToken
  let known: KnownServer?

  private var keyID: String { token.keyID ?? "K" }
  private var teamID: String { token.teamID ?? "T" }
  private var command: String { "apns-mock key add FILE.p8 --key-id \(keyID) --team-id \(teamID)" }
  private var trusted: KnownServer.Key? { known?.keys.first { $0.key_id == token.keyID } }

  /// The repair for `InvalidProviderToken`.
  var untrusted: String {
    guard token.keyID != nil, token.teamID != nil else {
      return "the token lacks \(token.keyID == nil ? "kid, the key's id, in its header" : "iss, the team's id")"
    }
    guard let known else {
      return "the server does not trust the key \(keyID), or not as the team \(teamID)'s, or it is another key of that "
        + "name: \(command)"
    }
    if let trusted {
      if trusted.team_id != teamID {
        return
          "the server knows \(keyID) as a key of the team \(trusted.team_id), and the token says \(teamID): sign with "
          + "iss \(trusted.team_id), or apns-mock key rm \(keyID) and add it anew"
      }
      return
        "the server trusts another key as \(keyID): sign with its private half, or apns-mock key rm \(keyID), then "
        + command
    }
    if known.keys.contains(where: { $0.key_id == teamID || $0.team_id == keyID }) {
      return "key id and team id are the wrong way round: kid takes \(teamID), and iss \(keyID)"
    }
    let ids = known.keys.map(\.key_id).joined(separator: ", ")
    return "the server does not trust the key \(keyID) (it trusts \(ids.isEmpty ? "none" : ids)): \(command)"
  }

  /// The repair for a key of the other environment.
  var wrongEnvironment: String {
    let own = trusted?.environment ?? (known?.environment == "production" ? "sandbox" : nil) ?? "production"
    let mimicked = known?.environment ?? (own == "production" ? "sandbox" : "production")
    return
      "the key \(keyID) is for \(own) only, and the server mimics \(mimicked): start it with --environment \(own), or "
      + "sign with a key that is good for \(mimicked) (apns-mock key ls)"
  }
}

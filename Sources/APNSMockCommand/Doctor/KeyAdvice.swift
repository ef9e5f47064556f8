/// Advice for a rejected provider token, based on the token's ids and, if known, the keys the server trusts.
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
      return "the token lacks \(token.keyID == nil ? "kid, the key id, in its header" : "iss, the team id")"
    }
    guard let known else {
      return "the server does not trust the key \(keyID), trusts it for another team than \(teamID), or trusts another "
        + "key with this id: \(command)"
    }
    if let trusted {
      if trusted.team_id != teamID {
        return
          "the server trusts \(keyID) for the team \(trusted.team_id), but the token's iss is \(teamID): sign with iss "
          + "\(trusted.team_id), or remove the key (apns-mock key rm \(keyID)) and add it again"
      }
      return
        "the server trusts another key with the id \(keyID): sign with that private key, or apns-mock key rm \(keyID), "
        + "then \(command)"
    }
    if known.keys.contains(where: { $0.key_id == teamID || $0.team_id == keyID }) {
      return "key id and team id are swapped: kid must be \(teamID), and iss \(keyID)"
    }
    let ids = known.keys.map(\.key_id).joined(separator: ", ")
    return "the server does not trust the key \(keyID) (it trusts \(ids.isEmpty ? "none" : ids)): \(command)"
  }

  /// The repair for a key that is restricted to the other environment.
  var wrongEnvironment: String {
    let own = trusted?.environment ?? (known?.environment == "production" ? "sandbox" : nil) ?? "production"
    let mimicked = known?.environment ?? (own == "production" ? "sandbox" : "production")
    return
      "the key \(keyID) is valid only in \(own), and the server's environment is \(mimicked): start it with "
      + "--environment \(own), or sign with a key that is valid in \(mimicked) (apns-mock key ls)"
  }
}

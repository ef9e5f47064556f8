extension ProviderKeysFile {
  /// The initial content of the file: the generated key, and instructions for adding keys.
  static let initialText = """
    # The provider keys this server trusts. It needs their public halves only, and reads this file when it starts.
    # apns-mock key add FILE.p8 --key-id K --team-id T writes an entry, and tells a server that is running.
    #
    #   key_id          the key's id, ten characters: the `kid` of a provider token
    #   team_id         the team's id, ten characters: its `iss`
    #   public_key      the public half in PEM, which you get by: openssl pkey -in AuthKey_ABC123DEFG.p8 -pubout
    #   file            instead of public_key: a file that holds it, relative to this folder; a private key (.p8) only if
    #                   it lies in this folder
    #   environment     sandbox or production, for a key that is limited to one of them; left out: both
    #   topics          the topics of a topic-specific key; left out: all
    #   related_key_id  the key that a topic-specific key may share a connection with; usually left out

    keys:
      # Made at the first start and good for everything: the key for your test provider.
      - key_id: \(CertificateFolder.keyID)
        team_id: \(CertificateFolder.teamID)
        file: \(ownKeyFile)

      # - key_id: ABC123DEFG
      #   team_id: DEF123GHIJ
      #   environment: sandbox
      #   topics: [com.example.app, com.example.app.voip]
      #   public_key: |
      #     -----BEGIN PUBLIC KEY-----
      #     (two lines of base64)
      #     -----END PUBLIC KEY-----

    """
}

extension ProviderKeysFile {
  /// The initial content of the file: the generated key, and instructions for adding keys.
  static let initialText = """
    # The provider keys this server trusts. Only public keys are required. The file is read at the start.
    # apns-mock key add FILE.p8 --key-id K --team-id T adds an entry, also to a running server.
    #
    #   key_id          the key's id, ten characters: the `kid` of a provider token
    #   team_id         the team's id, ten characters: its `iss`
    #   public_key      the public key in PEM, the output of: openssl pkey -in AuthKey_ABC123DEFG.p8 -pubout
    #   file            instead of public_key: a file with the key, relative to this folder; a private key (.p8) only if
    #                   it is in this folder
    #   environment     sandbox or production, for a key that is limited to one of them; default: both
    #   topics          the topics of a topic-specific key; default: all
    #   related_key_id  the key that a topic-specific key may share a connection with; usually absent

    keys:
      # The key for your test provider, created at the first start and valid for all environments and topics.
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

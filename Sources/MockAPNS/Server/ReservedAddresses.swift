import APNSMockRules

/// The addresses of a standby server's listeners for providers. They are bound, so that their ports are known and no program without
/// SO_REUSEADDR takes them, but do not listen, so that connections are refused and clients try the next server.
package struct ReservedAddresses: Sendable {
  /// The listeners with the ports actually bound.
  package private(set) var listeners: [BoundListener] = []
  private var sockets: [BoundSocket] = []

  /// Binds the addresses of a configuration.
  ///
  /// - Throws: `ListenError` if an address cannot be bound.
  package init(_ configuration: MockServer.Configuration) throws {
    do {
      for (address, kind) in configuration.providerListeners {
        let socket = try Self.bind(address.endpoint, kind)
        sockets.append(socket)
        listeners.append(
          BoundListener(
            kind: kind, endpoint: MockServer.Endpoint(host: address.endpoint.host, port: socket.port),
            environment: address.environment ?? configuration.environment))
      }
    } catch {
      for socket in sockets { socket.close() }
      throw error
    }
  }

  /// Returns the configuration with the ports of these addresses. A server that is started with it releases each address when it
  /// listens there, so that no other program gets the port in between.
  package func pass(to configuration: MockServer.Configuration) -> MockServer.Configuration {
    var configuration = configuration
    configuration.reservedAddresses = self
    var ports = listeners.map(\.endpoint.port)[...]
    func setPort(_ address: inout ListenerAddress) { address.endpoint.port = ports.popFirst() ?? address.endpoint.port }
    for index in configuration.apnsListeners.indices { setPort(&configuration.apnsListeners[index]) }
    for index in configuration.apnsPlainListeners.indices { setPort(&configuration.apnsPlainListeners[index]) }
    if var proxy = configuration.proxyListener {
      setPort(&proxy)
      configuration.proxyListener = proxy
    }
    for index in configuration.manageListeners.indices { setPort(&configuration.manageListeners[index]) }
    return configuration
  }

  /// Releases the address of the listener with an index.
  func release(_ index: Int) { sockets[index].close() }

  private static func bind(_ endpoint: MockServer.Endpoint, _ kind: ListenerKind) throws -> BoundSocket {
    do {
      return try BoundSocket(endpoint)
    } catch {
      throw ListenError(endpoint: endpoint, purpose: kind.purpose, flag: kind.flag, cause: error)
    }
  }
}

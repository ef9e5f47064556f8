import APNSRules
import NIOCore
import PlatformLibc

/// The addresses of a standby server's listeners for providers. They are bound, so that their ports are known and no program without
/// SO_REUSEADDR takes them, but do not listen, so that connections are refused and clients try the next server.
package struct ReservedAddresses: Sendable {
  /// The listeners with the ports actually bound.
  package private(set) var listeners: [BoundListener] = []
  private var descriptors: [CInt] = []

  /// Binds the addresses of a configuration.
  ///
  /// - Throws: `ListenError` if an address cannot be bound.
  package init(_ configuration: Configuration) throws {
    do {
      for (address, kind) in configuration.providerListeners {
        let (descriptor, port) = try Self.bind(address.endpoint, kind)
        descriptors.append(descriptor)
        listeners.append(
          BoundListener(
            kind: kind, endpoint: Endpoint(host: address.endpoint.host, port: port),
            environment: address.environment ?? configuration.environment))
      }
    } catch {
      for descriptor in descriptors { close(descriptor) }
      throw error
    }
  }

  /// Releases the addresses, and returns the configuration with their ports.
  package consuming func release(to configuration: Configuration) -> Configuration {
    for descriptor in descriptors { close(descriptor) }
    var configuration = configuration
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

  /// The type of a socket for TCP, whose constant has another Swift type on each platform.
  private static let stream: CInt = 1

  private static func bind(_ endpoint: Endpoint, _ kind: ListenerKind) throws -> (descriptor: CInt, port: Int) {
    do {
      let address = try SocketAddress.makeAddressResolvingHost(endpoint.host, port: endpoint.port)
      let descriptor = socket(address.protocol.rawValue, stream, 0)
      guard descriptor >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
      var isOn: CInt = 1
      setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<CInt>.size))
      let isBound = address.withSockAddr { pointer, size in PlatformLibc.bind(descriptor, pointer, socklen_t(size)) == 0
      }
      guard isBound else {
        let code = errno
        close(descriptor)
        throw IOError(errnoCode: code, reason: "bind")
      }
      return (descriptor, port(of: descriptor) ?? endpoint.port)
    } catch {
      throw ListenError(endpoint: endpoint, purpose: kind.purpose, flag: kind.flag, cause: error)
    }
  }

  /// Returns the port of a bound socket.
  private static func port(of descriptor: CInt) -> Int? {
    var address = [UInt8](repeating: 0, count: 128)
    var size = socklen_t(address.count)
    let result = address.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: sockaddr.self) { $0.baseAddress.map { getsockname(descriptor, $0, &size) } }
    }
    // Addresses of IPv4 and of IPv6 have the port at the same place.
    return result == 0 ? Int(address[2]) << 8 | Int(address[3]) : nil
  }
}

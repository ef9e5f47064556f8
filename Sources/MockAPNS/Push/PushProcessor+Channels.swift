import APNSMockRules
package import APNSMockDevices
import APNSMockHTTP2Session
import APNSMockHTTPMessage
import APNSMockInbox
internal import APNSMockNotation

/// Broadcasts and channel management: what an accepted request does, and its response (Protocol.md, section 10).
extension PushProcessor {
  /// Prepares the effect and the response of an accepted broadcast or request of channel management. Rejects a new
  /// channel over a limit and returns nil.
  func beginExchange(_ request: ChannelRequest, _ verdict: inout Verdict) -> ChannelExchange? {
    var exchange = ChannelExchange(request: request, environment: connection.environment)
    switch request.operation {
    case .create:
      do throws(ChannelLimit) {
        exchange.reserved = try state.channels.reserve(request.bundleID, in: connection.environment)
      } catch {
        verdict.rejectNewChannel(over: error)
        return nil
      }
    case .read:
      exchange.body = Self.json { writer in
        writer.member("message-storage-policy", request.storagePolicy?.rawValue ?? 0)
        writer.member("push-type", "LiveActivity")
      }
    case .list:
      let channels = state.channels.channels(of: request.bundleID, in: connection.environment)
      exchange.body = Self.json { $0.member("channels", channels.map(\.id)) }
    case .broadcast, .delete: break
    }
    return exchange
  }

  private static func json(_ members: (inout JSONWriter) -> Void) -> [UInt8] {
    var writer = JSONWriter()
    writer.object(members)
    return writer.bytes
  }

  /// Records an accepted broadcast or request of channel management and submits its response.
  func accept(
    _ exchange: ChannelExchange, _ request: HTTPRequest, of stream: RequestStream, _ verdict: borrowing Verdict,
    _ identity: Identity, attempt: Int32?, _ session: HTTP2ServerSession
  ) {
    let status = verdict.status
    announceStreamLimit(before: status, on: stream, session)
    let template = filledTemplate(status: status, for: request, verdict.facts)
    session.respond(to: stream, headers: template.headers, body: exchange.body)
    record(
      request, verdict, generatedID: template.generatedID(of: verdict.facts), key: identity.key,
      attempt: countAttempt(of: identity, accepted: true, next: attempt),
      Record.Result(
        .accepted, .response, sentResponse: Record.SentResponse(status: status),
        finishedAt: batch.serverTime))
  }

  /// Performs an accepted request, or ends its reservation if a fault kept it from being accepted.
  ///
  /// - Returns: The broadcast to be delivered; nil for channel management.
  func finish(_ exchange: ChannelExchange, isAccepted: Bool) -> AcceptedBroadcast? {
    let request = exchange.request
    let storagePolicy = request.storagePolicy ?? .none
    if let reserved = exchange.reserved {
      if isAccepted {
        state.channels.create(reserved, storagePolicy)
      } else {
        state.channels.release(reserved)
      }
    }
    guard isAccepted, let id = request.channelID else { return nil }
    let channel = ChannelName(bundleID: request.bundleID, environment: exchange.environment, id: id)
    switch request.operation {
    case .broadcast:
      return AcceptedBroadcast(channel: channel, expiration: request.expiration ?? 0, storagePolicy: storagePolicy)
    case .delete:
      state.removeChannel(channel)
    case .create, .read, .list: break
    }
    return nil
  }

  /// Returns the header fields of a response to the current request, without its ids. `apns-unique-id` for broadcasts
  /// in the sandbox follows from the models of three clients (Protocol.md, section 10.1).
  func channelTemplate(status: Int, _ kind: RequestKind) -> ResponseTemplates.Template {
    let isSuccess = HTTPStatus.isSuccess(status)
    return ResponseTemplates.Template(
      status: status, idName: "apns-request-id", channelID: isSuccess ? channelExchange?.reserved?.id : nil,
      withUniqueID: isSuccess && kind == .broadcast && connection.environment == .sandbox,
      contentType: !isSuccess && activePolicy.settings.errorContentType)
  }
}

/// An accepted broadcast or request of channel management that is not performed yet.
struct ChannelExchange {
  let request: ChannelRequest
  let environment: PushEnvironment
  /// The channel to be created; nil for other operations.
  var reserved: ChannelName?
  /// The body of the response.
  var body: [UInt8] = []
}

/// The properties of an accepted broadcast that its delivery depends on.
struct AcceptedBroadcast {
  let channel: ChannelName
  /// `apns-expiration` in seconds since 1970.
  let expiration: Int64
  let storagePolicy: StoragePolicy
  /// In monotonic nanoseconds of machine time; set when the response is ready.
  var acceptedAt: MonotonicTime = 0
}

extension Broadcast {
  /// Creates a description of a broadcast that is recorded.
  init(_ accepted: AcceptedBroadcast, seq: Int, time: ServerTime) {
    self.init(
      seq: seq, channel: accepted.channel, expiration: accepted.expiration,
      isStored: accepted.storagePolicy == .newest, acceptedAt: accepted.acceptedAt, time: time)
  }
}

extension ServerState {
  /// Removes a channel and its subscriptions.
  package func removeChannel(_ channel: ChannelName) {
    channels.remove(channel)
    devices.removeSubscriptions(of: channel)
  }
}

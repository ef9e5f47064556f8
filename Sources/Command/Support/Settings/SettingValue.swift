import APNSMockRules
import ArgumentParser
import APNSMockClientCommands
import APNSMockInbox
import Logging

/// What the help and the completion of a shell know about a setting's value.
extension Setting {
  /// The placeholder of the value in the help: `host:port` in `--admin <host:port>`.
  var placeholder: String {
    switch self {
    case .apns, .apnsPlain, .proxy, .manage, .admin: "host:port"
    case .certs, .profiles: "folder"
    case .profile: "profile"
    case .environment: "environment"
    case .rules: "mode"
    case .topics, .devices: "any|known"
    case .seed, .maxRecords, .maxDevices, .threads, .upstreamConnections: "number"
    case .maxBytes: "size"
    case .record: "selection"
    case .store: "memory|url"
    case .durable: "soon|answer"
    case .storeFailure: "refuse|drop"
    case .retain, .shutdownTimeout: "duration"
    case .advertise, .webhook: "url"
    case .upstream: "sandbox|production|url"
    case .allowTopics, .allowTokens: "pattern"
    case .webhookFilter: "query"
    case .fixtures, .portFile, .exportOnExit, .clientCA, .upstreamCA, .upstreamCert, .upstreamKey, .webhookCA: "file"
    case .adminToken: "token"
    case .san, .allowHost: "host"
    case .logFormat: "text|json"
    case .logLevel: "level"
    case .magicTokens, .learn, .webhookPayload, .webhookAnywhere: "on|off"
    }
  }

  /// The values that a shell completes.
  var completion: CompletionKind {
    switch self {
    case .certs, .profiles: .directory
    case .profile: .profile
    case .environment: .list(PushEnvironment.allCases.map(\.rawValue))
    case .rules: .list(RuleMode.allCases.map(\.rawValue))
    case .topics, .devices: .list(Acceptance.allCases.map(\.rawValue))
    case .record: .list(["all", "counters", "sample=1/10"])
    case .store: .list(["memory", "sqlite:", "postgres://"])
    case .durable: .list(RecordWriter.Durability.allCases.map(\.rawValue))
    case .storeFailure: .list(RecordWriter.FailurePolicy.allCases.map(\.rawValue))
    case .fixtures: .yamlOrJSON
    case .portFile, .exportOnExit, .clientCA, .upstreamCA, .upstreamCert, .upstreamKey, .webhookCA: .file()
    case .upstream: .list(["sandbox", "production", "https://"])
    case .adminToken: .list([Setting.generatedToken])
    case .logFormat: .list(LogFormat.allCases.map(\.rawValue))
    case .logLevel: .list(Logger.Level.allCases.map(\.rawValue))
    case .magicTokens, .learn, .webhookPayload, .webhookAnywhere: .list(["on", "off"])
    case .apns, .apnsPlain, .proxy, .manage, .admin, .seed, .maxRecords, .maxBytes, .retain, .upstreamConnections,
      .allowTopics, .allowTokens, .advertise, .maxDevices,
      .threads, .san, .allowHost, .shutdownTimeout, .webhook, .webhookFilter:
      .default
    }
  }
}

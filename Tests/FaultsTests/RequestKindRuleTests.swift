import APNSMockRules
import APNSMockFaultModel
import Testing

@testable import APNSMockFaults

/// The kinds of requests that rules apply to: pushes, unless the condition names `kind`.
@Suite struct RequestKindRuleTests {
  static let paths = ["/3/device/ab12", "/4/broadcasts/apps/com.acme.shop", "/1/apps/com.acme.shop/channels"]

  /// Conditions, and the indices of the paths that they apply to.
  @Test(arguments: [
    ("{}", [0]), ("{kind: broadcast}", [1]), ("{kind: {in: [broadcast, channel]}}", [1, 2]), ("{kind: push}", [0]),
    ("{kind: {present: true}}", [0, 1, 2]), ("{not: {kind: channel}}", [0, 1]), ("{q: 'kind:*'}", [0, 1, 2]),
    ("{q: '!kind:push'}", [1, 2]), ("{environment: sandbox}", [0]), ("{environment: sandbox, kind: channel}", [2]),
    ("{environment: production, kind: channel}", []), ("{q: 'environment:sandbox'}", [0]),
  ])
  func rulesAreAboutPushes(condition: String, indices: [Int]) throws {
    for injectionPoint in [InjectionPoint.request, .response] {
      let action = injectionPoint == .request ? "respond: {status: 503}" : "split_body: "
      let rule = try AddedRuleDefinition.parse(
        "{name: x, at: \(injectionPoint.rawValue), when: \(condition), do: {\(action)}}"
      )
      .rule
      let plan = FaultPlan([rule])
      let fired = Self.paths.indices.filter { index in
        let fixture = EngineFixture {
          $0.path = Self.paths[index]
          $0.response = .init(status: 200)
        }
        return plan.fires(fixture, at: injectionPoint)
      }
      #expect(fired == indices)
      // A rule is not evaluated for other requests.
      #expect(condition != "{}" || plan.ruleCounters.explain("x")?.evaluations == 1)
    }
  }

  @Test func otherKindsAreExplained() throws {
    let plan = FaultPlan([.unavailable("x")])
    let traffic = EngineFixture { $0.path = Self.paths[1] }.traffic
    let results = plan.evaluateWithoutCounting(traffic, at: .request, now: 1)
    #expect(results.map(\.outcome) == [.missed(test: "kind", wanted: "\"push\"", seen: "broadcast")])
  }

  @Test func connectionsHaveAnEnvironmentAndNoKind() throws {
    let rule = try AddedRuleDefinition.parse("{at: accept, when: {environment: production}, do: {refuse: }}").rule
    let plan = FaultPlan([rule])
    for environment in PushEnvironment.allCases {
      let traffic = EngineFixture { $0.connection.environment = environment }.connecting
      #expect(plan.decide(traffic, at: .accept, now: 0).isEmpty == (environment == .sandbox))
    }
  }
}

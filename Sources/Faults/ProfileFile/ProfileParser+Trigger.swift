import FaultModel
internal import Notation

extension ProfileParser {
  /// Parses `trigger`.
  func trigger(_ place: Located, at injectionPoint: InjectionPoint?) -> Trigger {
    var trigger = Trigger()
    guard let map = map(place, TriggerKey.self) else { return trigger }
    let most = Int(Int32.max)
    if let value = map[.probability] { trigger.probability = likelihood(value) }
    if let value = map[.drawPer], let key: Trigger.Key = key(value, at: injectionPoint) { trigger.drawKey = key }
    if let value = map[.first] { trigger.first = whole(value, in: 1...most) }
    if let value = map[.after] { trigger.after = whole(value, in: 0...most) }
    if let value = map[.every] { trigger.every = whole(value, in: 1...most) }
    if let value = map[.times] { trigger.times = whole(value, in: 1...most) }
    if let value = map[.timesPer], let key = countKey(value, at: injectionPoint) { trigger.countKey = key }
    if let value = map[.overLimit] { trigger.overLimit = rate(value, at: injectionPoint) }
    if let value = map[.window] { trigger.window = window(value, at: injectionPoint) }
    if let value = map[.afterStreams] {
      if let injectionPoint, injectionPoint.isBeforeStreams {
        fail(
          at: map.position(of: .afterStreams), value.path, "no stream can be open at \(injectionPoint.rawValue)",
          hint: "at connection, request or response it can")
      }
      trigger.afterStreams = whole(value, in: 1...most)
    }
    if let value = map[.maxActive] { trigger.maxActive = whole(value, in: 1...most) }
    if trigger.overLimit != nil, let injectionPoint, !injectionPoint.hasPush, injectionPoint != .accept,
      injectionPoint != .tls
    {
      fail(
        at: map.position(of: .overLimit), map.path(of: .overLimit), "what has a rate are pushes and new connections",
        hint: "it is possible at accept, tls, request or response")
    }
    check(trigger, map)
    return trigger
  }

  private func check(_ trigger: Trigger, _ map: Map<TriggerKey>) {
    if let first = trigger.first, let every = trigger.every, every > first {
      fail(
        at: map.position(of: .every), map.path(of: .every),
        "\(every) is more than first, \(first): this never fires",
        hint: "both must agree")
    }
    if map.has(.drawPer), !map.has(.probability) {
      warn(
        at: map.position(of: .drawPer), map.path(of: .drawPer), "it has no effect without a probability",
        hint: "omit it, or add a probability")
    }
    if map.has(.timesPer), ![.first, .after, .every, .times].contains(where: map.has) {
      warn(
        at: map.position(of: .timesPer), map.path(of: .timesPer), "it has no effect without a count",
        hint: "it belongs to first, after, every and times")
    }
    if case .fixed(0) = trigger.probability, parameterName(map[.probability]) == nil {
      warn(at: map.position(of: .probability), map.path(of: .probability), "this never fires")
    }
  }

  /// Returns the name of the parameter that a value refers to.
  func parameterName(_ place: Located?) -> String? {
    guard case .scalar(let scalar)? = place?.node.content else { return nil }
    return ParameterSet.name(in: scalar.text)
  }

  private func likelihood(_ place: Located) -> Trigger.Probability? {
    guard case .map = place.node.content else { return probability(place).map(Trigger.Probability.fixed) }
    guard let map = map(place, ProbabilityKey.self), let value = map[.ramp],
      let ramp = self.map(value, RampKey.self), let to = ramp[.to].flatMap(probability),
      let over = ramp[.over].flatMap({ duration($0, isPositive: true) })
    else { return nil }
    return .ramp(from: ramp[.from].flatMap(probability) ?? 0, to: to, over: over)
  }

  /// Parses the key of a draw or a count.
  private func key(_ place: Located, at injectionPoint: InjectionPoint?, allowed: [Trigger.Key] = Trigger.Key.allCases)
    -> Trigger.Key?
  {
    guard let key = word(place, of: Trigger.Key.self, allowed: allowed) else { return nil }
    if let injectionPoint, !injectionPoint.hasPush, !key.isKnownWithoutPush {
      fail(
        place, "there is no push at \(injectionPoint.rawValue)",
        hint: "here it is \(allowed.filter(\.isKnownWithoutPush).map(\.rawValue).joinedWithOr)")
      return nil
    }
    return key
  }

  /// Parses a key that can be counted by.
  func countKey(_ place: Located, at injectionPoint: InjectionPoint?) -> Trigger.Key? {
    if case .scalar(let scalar) = place.node.content, scalar.text == Trigger.Key.attempt.rawValue {
      fail(place, "an attempt is unique, so it cannot be counted", hint: "did you mean \"push\"?")
      return nil
    }
    return key(place, at: injectionPoint, allowed: Trigger.Key.counting)
  }

  private func rate(_ place: Located, at injectionPoint: InjectionPoint?) -> Trigger.Rate? {
    guard let map = map(place, RateKey.self),
      let limit = map[.limit].flatMap({ number($0, from: 0, inclusive: false) })
    else { return nil }
    let per = map[.per].map { duration($0, isPositive: true) } ?? .seconds(1)
    let burst = map[.burst].map { number($0, from: 1, inclusive: true) } ?? max(1, limit)
    let key = map[.key].map { countKey($0, at: injectionPoint) } ?? .rule
    guard let per, let burst, let key else { return nil }
    return Trigger.Rate(limit: limit, per: per, burst: burst, key: key)
  }

  private func window(_ place: Located, at injectionPoint: InjectionPoint?) -> Trigger.Window? {
    guard let map = map(place, WindowKey.self) else { return nil }
    if map.isEmpty {
      fail(place, "when does it open, and for how long?", hint: "{after: 30s, for: 10s} or {every: 60s, for: 5s}")
      return nil
    }
    let after = map[.after].map { duration($0) } ?? .zero
    let length = map[.length].flatMap { duration($0, isPositive: true) }
    let every = map[.every].flatMap { duration($0, isPositive: true) }
    guard let after, length != nil || !map.has(.length), every != nil || !map.has(.every) else { return nil }
    if let every {
      guard let length else {
        fail(place, "a repeated window must close", hint: "specify how long it stays open: for: 5s")
        return nil
      }
      if length >= every, injectionPoint != .connection {
        warn(place, "open for as long as until it opens again: it never closes")
      }
    }
    return Trigger.Window(after: after, length: length, every: every)
  }
}

extension InjectionPoint {
  /// Whether there is a push.
  var hasPush: Bool { self == .request || self == .response }

  /// Whether no stream can have been opened yet.
  var isBeforeStreams: Bool { self == .accept || self == .tls || self == .settings }
}

import FaultModel
internal import APNSRules
internal import HTTP2Session
internal import Notation
internal import TLSEngine

extension ProfileParser {
  /// An action and its weight, which is 1 outside of `choose`.
  private struct Part {
    let action: Action
    let weight: Double
  }

  /// Parses `do`: a map with one action.
  func action(_ place: Located, at injectionPoint: InjectionPoint?) -> Action? {
    part(place, at: injectionPoint, isChoice: false, isNested: false)?.action
  }

  static let weight = "weight"

  private func part(_ place: Located, at injectionPoint: InjectionPoint?, isChoice: Bool, isNested: Bool) -> Part? {
    if case .scalar(let scalar) = place.node.content, Action.Name(rawValue: scalar.text) != nil {
      fail(place, "an action is a map, not \(place.node.kind)", hint: "did you mean {\(scalar.text): {}}?")
      return nil
    }
    if case .list = place.node.content {
      fail(place, "expected one action, not a list", hint: "choose and sequence accept several")
      return nil
    }
    guard let entries = entries(place) else { return nil }
    let names = Action.Name.allCases.map(\.rawValue) + (isChoice ? [Self.weight] : [])
    var weight: Double? = 1
    var found: (name: Action.Name, entry: YAMLNode.Entry)?
    var isUnknown = false
    for entry in entries {
      if isChoice, entry.key == Self.weight {
        weight = number(place.member(entry), from: 0, inclusive: false, to: 1e9)
      } else if let name = Action.Name(rawValue: entry.key) {
        if let found {
          fail(
            at: entry.position, place.member(entry).path,
            "a second action, after \(found.name.rawValue)",
            hint: isNested ? "each part has one" : "a rule has one; choose and sequence accept several")
        } else {
          found = (name, entry)
        }
      } else {
        isUnknown = true
        failUnknown(entry, in: place, among: names)
      }
    }
    guard let found else {
      if !isUnknown { fail(place, "the action is missing", hint: "expected one of \(names.joined(separator: ", "))") }
      return nil
    }
    let value = place.member(found.entry)
    check(found.name, at: injectionPoint, found.entry.position, value.path)
    guard let action = action(found.name, value, at: injectionPoint), let weight else { return nil }
    return Part(action: action, weight: weight)
  }

  private func check(_ name: Action.Name, at injectionPoint: InjectionPoint?, _ position: TextPosition, _ path: String)
  {
    if let injectionPoint, !name.injectionPoints.contains(injectionPoint) {
      let injectionPoints = InjectionPoint.allCases.filter(name.injectionPoints.contains)
      fail(
        at: position, path, "not possible at \(injectionPoint.rawValue)",
        hint: "did you mean at: \(injectionPoints.map(\.rawValue).joinedWithOr)?")
    }
  }

  private func action(_ name: Action.Name, _ place: Located, at injectionPoint: InjectionPoint?) -> Action? {
    switch name {
    case .respond: return response(place).map(Action.respond)
    case .delay: return delay(place).map(Action.delay)
    case .hang:
      return hold(place, endings: Action.Ending.allCases, usual: .resetStream).map { .hang(for: $0, endWith: $1) }
    case .stall:
      return hold(place, endings: Action.Ending.afterStall, usual: .close).map { .stall(for: $0, endWith: $1) }
    case .resetStream:
      guard let map = map(place, ResetKey.self) else { return nil }
      return (map[.code].map { code($0) } ?? Action.Standard.resetCode).map(Action.resetStream)
    case .resetConnection:
      guard let map = map(place, ConnectionResetKey.self) else { return nil }
      return (map[.afterAccepting].map { flag($0) } ?? false).map { .resetConnection(afterAccepting: $0) }
    case .goAway: return goAway(place).map(Action.goAway)
    case .drain: return drain(place)
    case .loseResponse:
      guard let map = map(place, LossKey.self) else { return nil }
      return (map[.endWith].map { word($0, allowed: Action.Ending.afterLoss) } ?? .nothing).map(Action.loseResponse)
    case .dribble:
      guard let map = map(place, DribbleKey.self), let chunks = map[.chunks].flatMap({ whole($0, in: 2...1000) }),
        let over = map[.over].flatMap({ duration($0, isPositive: true) })
      else { return nil }
      return .dribble(chunks: chunks, over: over)
    case .dropHeader:
      guard let map = map(place, DropHeaderKey.self), let value = map[.name], let text = text(value) else { return nil }
      return fieldName(text, at: value.node.position, path: value.path).map(Action.dropHeader)
    case .changeID: return map(place, ChangeIDKey.self)?[.to].flatMap { word($0) }.map(Action.changeID)
    case .starveWindow: return time(place).map { .starveWindow(for: $0) }
    case .ignorePings: return time(place).map { .ignorePings(for: $0) }
    case .silence: return time(place).map { .silence(for: $0) }
    case .settings: return settings(place, at: injectionPoint).map(Action.settings)
    case .alert:
      guard let map = map(place, AlertKey.self) else { return nil }
      return (map[.name].map { alert($0) } ?? Action.Standard.alert).map(Action.alert)
    case .certificate: return map(place, CertificateKey.self)?[.use].flatMap { word($0) }.map(Action.certificate)
    case .choose: return choose(place, at: injectionPoint)
    case .sequence: return sequence(place, at: injectionPoint)
    case .close, .splitBody, .truncateBody, .garbleBody, .emptyErrorBody, .refuse, .pass:
      return map(place, NoKey.self).flatMap { _ in Action.plain(name) }
    }
  }

  // MARK: - Combined actions

  private func choose(_ place: Located, at injectionPoint: InjectionPoint?) -> Action? {
    guard let elements = list(place) else { return nil }
    guard !elements.isEmpty else {
      fail(place, "choose has no alternatives")
      return nil
    }
    let parts = elements.map { part($0, at: injectionPoint, isChoice: true, isNested: true) }
    let good = parts.compactMap { $0 }
    guard good.count == parts.count else { return nil }
    return .choose(good.map { Action.Choice(weight: $0.weight, action: $0.action) })
  }

  private func sequence(_ place: Located, at injectionPoint: InjectionPoint?) -> Action? {
    guard let map = map(place, SequenceKey.self) else { return nil }
    let key = map[.key].map { countKey($0, at: injectionPoint) } ?? .rule
    let onEnd = map[.onEnd].map { word($0, of: Action.SequenceEnd.self) } ?? .stay
    guard let value = map[.steps], let elements = list(value) else { return nil }
    guard !elements.isEmpty else {
      fail(value, "sequence has no steps")
      return nil
    }
    let steps = elements.map { part($0, at: injectionPoint, isChoice: false, isNested: true)?.action }
    let good = steps.compactMap { $0 }
    guard let key, let onEnd, good.count == steps.count else { return nil }
    return .sequence(key: key, steps: good, onEnd: onEnd)
  }

  // MARK: - Fields

  private func delay(_ place: Located) -> Action.Delay? {
    if case .scalar(let scalar) = place.node.content, DurationFormat.duration(scalar.text) != nil {
      fail(place, "expected a duration, not a map", hint: "did you mean {fixed: \(scalar.text)}?")
      return nil
    }
    guard let map = map(place, DelayKey.self) else { return nil }
    let forms = DelayKey.allCases.filter { map.has($0) }
    guard let form = forms.first, forms.count == 1, let value = map[form] else {
      fail(place, "a delay is one of fixed, uniform and lognormal", hint: "{fixed: 500ms}")
      return nil
    }
    switch form {
    case .fixed: return duration(value).map(Action.Delay.fixed)
    case .uniform:
      guard let range = self.map(value, UniformKey.self), let min = range[.min].flatMap({ duration($0) }),
        let max = range[.max].flatMap({ duration($0) })
      else { return nil }
      guard min <= max else {
        fail(value, "min is longer than max")
        return nil
      }
      return .uniform(min: min, max: max)
    case .lognormal:
      guard let shape = self.map(value, LognormalKey.self),
        let median = shape[.median].flatMap({ duration($0, isPositive: true) }),
        let sigma = shape[.sigma].flatMap({ number($0, from: 0, inclusive: true, to: 10) }),
        let max = shape[.max].flatMap({ duration($0, isPositive: true) })
      else { return nil }
      guard median <= max else {
        fail(value, "median is longer than max")
        return nil
      }
      return .lognormal(median: median, sigma: sigma, max: max)
    }
  }

  private func hold(
    _ place: Located, endings: [Action.Ending], usual: Action.Ending
  ) -> (length: Duration?, ending: Action.Ending)? {
    guard let map = map(place, HoldKey.self) else { return nil }
    let length = map[.length].flatMap { duration($0) }
    let ending = map[.endWith].map { word($0, allowed: endings) } ?? usual
    guard let ending, length != nil || !map.has(.length) else { return nil }
    return (length, ending)
  }

  /// Parses `for`; the inner value is nil if the field is absent.
  private func time(_ place: Located) -> Duration?? {
    guard let map = map(place, TimeKey.self) else { return nil }
    guard let value = map[.length] else { return .some(nil) }
    return duration(value).map { .some($0) }
  }

  private func goAway(_ place: Located) -> Action.GoAwayParameters? {
    guard let map = map(place, GoAwayKey.self) else { return nil }
    let usual = Action.GoAwayParameters()
    let errorCode = map[.code].map { code($0) } ?? usual.code
    let lastStream = map[.lastStream].map { word($0) } ?? usual.lastStream
    let debug = map[.debug].map { textOrJSON($0, limit: 8192) } ?? usual.debugData
    let twice = map[.twice].map { flag($0) } ?? usual.twice
    let end = map[.closeAfter].map { closing($0) } ?? .some(usual.closeAfter)
    guard let errorCode, let lastStream, let debug, let twice, let end else { return nil }
    return Action.GoAwayParameters(
      code: errorCode, lastStream: lastStream, debugData: debug, twice: twice, closeAfter: end)
  }

  /// Parses a duration or `never`.
  private func closing(_ place: Located) -> Duration?? {
    if case .scalar(let scalar) = place.node.content, scalar.text == Action.Standard.never { return .some(nil) }
    return duration(place).map { .some($0) }
  }

  private func drain(_ place: Located) -> Action? {
    guard let map = map(place, DrainKey.self) else { return nil }
    let response = map[.respond].map(self.response) ?? Action.Standard.drainResponse
    guard let length = map[.length].flatMap({ duration($0) }), let response else { return nil }
    return .drain(for: length, respond: response)
  }

  private func settings(_ place: Located, at injectionPoint: InjectionPoint?) -> Action.SettingsParameters? {
    guard let map = map(place, SettingsKey.self) else { return nil }
    if !map.has(.acknowledgesClient), !map.has(.maxConcurrentStreams), !map.has(.initialWindowSize),
      !map.has(.maxHeaderListSize), !map.has(.delay)
    {
      warn(place, "SETTINGS without a setting have no effect")
    }
    func value(_ key: SettingsKey, most: Int) -> UInt32?? {
      guard let place = map[key] else { return .some(nil) }
      return whole(place, in: 0...most).map { .some(UInt32($0)) }
    }
    let usual = Action.SettingsParameters()
    let streams = value(.maxConcurrentStreams, most: Int(UInt32.max))
    let window = value(.initialWindowSize, most: Int(Int32.max))
    let headers = value(.maxHeaderListSize, most: Int(UInt32.max))
    let after = map[.after].map { duration($0) } ?? usual.after
    let delay = map[.delay].map { duration($0) } ?? usual.delay
    let acknowledges = map[.acknowledgesClient].map { flag($0) } ?? usual.acknowledgesClient
    if let injectionPoint, injectionPoint != .settings, map.has(.delay) {
      fail(
        at: map.position(of: .delay), map.path(of: .delay),
        "the first SETTINGS are sent before \(injectionPoint.rawValue)",
        hint: "write at: settings, or after for further SETTINGS")
    }
    guard let streams, let window, let headers, let after, let delay, let acknowledges else { return nil }
    return Action.SettingsParameters(
      maxConcurrentStreams: streams, initialWindowSize: window, maxHeaderListSize: headers, after: after, delay: delay,
      acknowledgesClient: acknowledges)
  }

  /// Parses an HTTP/2 error code, by name or number.
  private func code(_ place: Located) -> UInt32? {
    if let number = plainNumber(place) { return whole(number, in: 0...Int(UInt32.max)).map { UInt32($0) } }
    guard let scalar = scalar(place, for: .word) else { return nil }
    if let code = HTTP2ErrorCode(name: scalar.text) { return code.rawValue }
    failWord(place, scalar, among: HTTP2ErrorCode.names)
    return nil
  }

  /// Parses a TLS alert, by name or number.
  private func alert(_ place: Located) -> UInt8? {
    if let number = plainNumber(place) { return whole(number, in: 0...255).map { UInt8($0) } }
    guard let scalar = scalar(place, for: .word) else { return nil }
    if let code = TLSAlert.code(named: scalar.text) { return code }
    failWord(place, scalar, among: TLSAlert.names)
    return nil
  }

  /// Returns `place` if it is a number or refers to a parameter of type int.
  private func plainNumber(_ place: Located) -> Located? {
    guard case .scalar(let scalar) = place.node.content else { return nil }
    if let name = ParameterSet.name(in: scalar.text) {
      return parameters.all[name]?.parameter.kind == .int ? place : nil
    }
    return !scalar.isString && YAMLScalarKind(scalar.text) == .number ? place : nil
  }
}

extension Action {
  /// Default values of fields that have no default in the model.
  enum Standard {
    /// INTERNAL_ERROR.
    static let resetCode: UInt32 = 2
    /// handshake_failure.
    static let alert: UInt8 = 40
    /// The value of `close_after` for a connection that stays open.
    static let never = "never"
    static let drainResponse = Action.Response(status: 503, reason: Reason.shutdown.text)
  }

  /// Returns the action with this name if it has no fields; otherwise nil.
  static func plain(_ name: Name) -> Action? {
    switch name {
    case .close: .close
    case .splitBody: .splitBody
    case .truncateBody: .truncateBody
    case .garbleBody: .garbleBody
    case .emptyErrorBody: .emptyErrorBody
    case .refuse: .refuse
    case .pass: .pass
    default: nil
    }
  }
}

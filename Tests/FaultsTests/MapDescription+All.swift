import APNSMockNotation

@testable import APNSMockFaultModel
@testable import APNSMockFaults

extension MapDescription {
  /// All maps with known keys in a profile file.
  static let all = Profile.schema.description.withNestedMaps

  /// This map and all maps that its values can contain.
  var withNestedMaps: [MapDescription] {
    var found: [MapDescription] = []
    SchemaForm.map(self).collectMaps(into: &found)
    return found
  }
}

extension SchemaForm {
  fileprivate func collectMaps(into found: inout [MapDescription]) {
    switch self {
    case .map(let map):
      guard !found.contains(where: { $0.name == map.name }), !map.fields.isEmpty else { return }
      found.append(map)
      for field in map.fields { field.form.collectMaps(into: &found) }
    case .reference("condition"): SchemaForm.map(Condition.schema.description).collectMaps(into: &found)
    case .reference("action"):
      for name in Action.Name.allCases { name.schema.form.collectMaps(into: &found) }
    case .reference(let name) where name.hasPrefix("match_"):
      SchemaForm.map(MatchKey.description).collectMaps(into: &found)
    case .list(let element), .named(let element): element.collectMaps(into: &found)
    case .either(let one, let other):
      one.collectMaps(into: &found)
      other.collectMaps(into: &found)
    default: break
    }
  }
}

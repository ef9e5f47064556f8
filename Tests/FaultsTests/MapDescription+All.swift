@testable import FaultModel
@testable import Faults

extension MapDescription {
  /// All maps with known keys in a profile file.
  static let all = Profile.syntax.description.withNestedMaps

  /// This map and all maps that its values can contain.
  var withNestedMaps: [MapDescription] {
    var found: [MapDescription] = []
    ValueForm.map(self).collectMaps(into: &found)
    return found
  }
}

extension ValueForm {
  fileprivate func collectMaps(into found: inout [MapDescription]) {
    switch self {
    case .map(let map):
      guard !found.contains(where: { $0.name == map.name }), !map.fields.isEmpty else { return }
      found.append(map)
      for field in map.fields { field.form.collectMaps(into: &found) }
    case .condition: ValueForm.map(Condition.syntax.description).collectMaps(into: &found)
    case .match: ValueForm.map(MatchKey.description).collectMaps(into: &found)
    case .action:
      for name in Action.Name.allCases { name.syntax.form.collectMaps(into: &found) }
    case .list(let element), .named(let element): element.collectMaps(into: &found)
    case .either(let one, let other):
      one.collectMaps(into: &found)
      other.collectMaps(into: &found)
    default: break
    }
  }
}

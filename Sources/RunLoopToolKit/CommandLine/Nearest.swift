// SPDX-License-Identifier: Apache-2.0

/// Returns the edit distance between two words.
///
/// - Complexity: O(n · m) in the lengths of the words.
func editDistance(_ first: String, _ second: String) -> Int {
  let second = Array(second)
  var row = Array(0...second.count)
  for (index, letter) in first.enumerated() {
    var diagonal = row[0]
    row[0] = index + 1
    for column in second.indices {
      let replaced = diagonal + (letter == second[column] ? 0 : 1)
      diagonal = row[column + 1]
      row[column + 1] = min(replaced, row[column] + 1, row[column + 1] + 1)
    }
  }
  return row[second.count]
}

/// Returns up to three names with the smallest edit distance to a word, ordered by the difference of their numbers.
///
/// Returns an empty array if no name has anything in common with the word.
func nearestNames(to word: String, among names: [String]) -> [String] {
  func number(_ name: String) -> Int { Int(name.drop { !$0.isNumber }) ?? 0 }
  let ranked = names.map { name in
    (name: name, distance: editDistance(word, name), gap: number(name).distance(to: number(word)).magnitude)
  }
  guard let least = ranked.map(\.distance).min(), least < word.count else { return [] }
  return ranked.filter { $0.distance == least }.sorted { $0.gap < $1.gap }.prefix(3).map(\.name)
}

/// Returns a "did you mean" question with the nearest names, or an empty string.
package func suggestion(for word: String, among names: [String]) -> String {
  let nearest = nearestNames(to: word, among: names)
  return nearest.isEmpty ? "" : "; did you mean \(nearest.joined(separator: " or "))?"
}

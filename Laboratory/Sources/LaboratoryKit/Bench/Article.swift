// SPDX-License-Identifier: Apache-2.0

/// One of the articles whose claims the laboratory tests.
struct Article: Sendable, Hashable {
  /// The article's number in JSON reports.
  let document: String
  /// The short name that the laboratory uses for the author.
  let author: String
  /// The author's full name.
  let fullName: String
  /// The year of publication, or nil if it is unknown.
  let year: Int?
  /// Its title with a translation, or its subject if it has none.
  let title: String

  static let xiong = Article(
    document: "000", author: "Xiong", fullName: "xiongzenghui", year: 2016,
    title: "notes on one-shot and permanent threads (untitled)")
  static let qiu = Article(
    document: "001", author: "Qiu", fullName: "qxuewei", year: nil,
    title: "iOS底层原理 - 常驻线程 (iOS internals: resident threads)")
  static let yongzhen = Article(
    document: "002", author: "Yongzhen", fullName: "ityongzhen", year: 2017,
    title: "详解RunLoop与多线程 (run loops and multithreading explained)")
  static let xilankong = Article(
    document: "003", author: "Xilankong", fullName: "xilankong", year: 2018,
    title: "RunLoop学习整理 (notes from studying run loops)")
  static let ren = Article(
    document: "004", author: "Ren", fullName: "Ren Yufei", year: 2016,
    title: "看了YY写的RunLoop自己写了一点总结 (a summary after reading YY on run loops)")

  /// All articles, in the order of their numbers.
  static let all = [xiong, qiu, yongzhen, xilankong, ren]

  /// The author and the title, in one line.
  var citation: String { "\(fullName)\(year.map { ", \($0)" } ?? ""): \(title)" }
}

/// Returns the names of the articles' authors, separated by commas.
func authors(of articles: [Article]) -> String { articles.map(\.author).joined(separator: ", ") }

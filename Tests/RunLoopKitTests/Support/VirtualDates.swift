// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopKit

extension Date {
  /// The date so many virtual milliseconds after the clock began, where a virtual wall clock says the beginning of
  /// 2001.
  static func virtual(_ milliseconds: Int) -> Date {
    Date(timeIntervalSinceReferenceDate: Double(milliseconds) / 1000)
  }

  /// The virtual milliseconds of a date, or its name.
  var text: String {
    switch self {
    case .distantFuture: "future"
    case .distantPast: "past"
    default: "\(timeIntervalSinceReferenceDate * 1000)".replacing(/\.0$/, with: "")
    }
  }
}

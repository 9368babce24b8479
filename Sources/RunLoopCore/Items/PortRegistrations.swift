// SPDX-License-Identifier: Apache-2.0

/// The modes that contain a port, and the loops that were asked to add it.
///
/// Guarded by the port's lock; changes also require the loop's lock.
struct PortRegistrations {
  var memberships = Memberships<Port>()
  /// The loops that were asked to add the port, without duplicates.
  private var adopters: ContiguousArray<RunLoop> = []

  /// Notes whether a loop was asked to add the port.
  mutating func setAdopted(_ isAdopted: Bool, by loop: RunLoop) {
    if isAdopted { adopters.append(loop) } else { adopters.removeAll { $0 === loop } }
  }

  /// The loops that hold the port, without duplicates.
  var loops: ShortList<RunLoop> {
    var loops = memberships.loops
    for loop in adopters where !loops.contains(where: { $0 === loop }) { loops.append(loop) }
    return loops
  }
}

extension Port: ModeItem {
  final func hold() -> Bool { reference.enter() }
  final var isOpen: Bool { reference.isOpen }
  final func setCommon(_ isCommon: Bool, of loop: RunLoop) { registrations.memberships.setCommon(isCommon, of: loop) }
  final func modes(of loop: RunLoop) -> ShortList<ModeState> { registrations.memberships.modes(of: loop) }
  final func isIn(_ mode: ModeState, of loop: RunLoop) -> Bool { mode.ports[ObjectIdentifier(self)] != nil }

  final func enter(_ mode: ModeState, of loop: RunLoop, _ table: inout ModeTable) {
    let membership = Membership(self, loop: loop, mode: mode)
    registrations.memberships.insert(membership)
    mode.insert(membership, isReady: hasMessage)
  }

  final func leave(_ mode: ModeState, of loop: RunLoop) {
    guard let membership = mode.removePort(self) else { return }
    registrations.memberships.remove(membership)
    loop.forgetPlace(of: self)
  }

  /// Removes the port from all loops, for a port that is invalidated in a way of its own.
  package final func leaveLoops() {
    lockItem()
    let loops = registrations.loops
    unlockItem()
    for loop in loops { loop.expel(self) }
  }
}

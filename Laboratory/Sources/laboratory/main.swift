// SPDX-License-Identifier: Apache-2.0

import Glibc
import LaboratoryKit

exit(LabCommand().run(Array(CommandLine.arguments.dropFirst())).rawValue)

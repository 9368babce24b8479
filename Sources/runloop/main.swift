import Glibc
import RunLoopLab

exit(RunLoopCommand.run(Array(CommandLine.arguments.dropFirst())).rawValue)

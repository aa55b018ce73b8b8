internal import CLandlock
internal import Glibc
internal import SystemPackage

/// Denies files, the network and other processes to the calling thread and all threads that it starts later,
/// permanently.
///
/// Threads that run already keep their rights. https://docs.kernel.org/userspace-api/landlock.html
enum Landlock {
    /// The rights that stay allowed below the root.
    enum Access {
        /// Reading existing files and folders: libraries and their plug-ins.
        case reading
        case nothing
    }

    /// - Returns: the kernel's version of Landlock; higher versions deny more.
    @discardableResult
    static func restrict(to access: Access) throws(Errno) -> Int {
        let version = pw_landlock_abi()
        guard version > 0 else { throw Errno(rawValue: errno) }
        let rights = Rights(version: version)
        let number = pw_landlock_create(
            pw_landlock_ruleset(file_system: rights.fileSystem, network: rights.network, scopes: rights.scopes))
        guard number >= 0 else { throw Errno(rawValue: errno) }
        let ruleset = FileDescriptor(rawValue: number)
        // Best effort: the kernel has its own reference to the rules by then.
        defer { try? ruleset.close() }
        if access == .reading { try allowReading(ruleset) }
        guard pw_no_new_privileges() == 0, pw_landlock_restrict(number) == 0 else { throw Errno(rawValue: errno) }
        return version
    }

    private static func allowReading(_ ruleset: FileDescriptor) throws(Errno) {
        let root = open("/", O_DIRECTORY | O_CLOEXEC)
        guard root >= 0 else { throw Errno(rawValue: errno) }
        defer { close(root) }
        let path = pw_landlock_path(access: Rights.reading, parent: root)
        guard pw_landlock_allow(ruleset.rawValue, path) == 0 else { throw Errno(rawValue: errno) }
    }

    /// Every right that a version knows, as bits of `linux/landlock.h`.
    struct Rights: Equatable {
        /// `READ_FILE` and `READ_DIR`.
        static let reading: UInt64 = 1 << 2 | 1 << 3

        let fileSystem: UInt64
        let network: UInt64
        let scopes: UInt64

        init(version: Int) {
            // The first version has thirteen; then came REFER (2), TRUNCATE (3) and IOCTL_DEV (5).
            let count: UInt64 =
                switch version {
                case ...1: 13
                case 2: 14
                case 3, 4: 15
                default: 16
                }
            fileSystem = 1 << count - 1
            // Binding and connecting by TCP (4); abstract sockets and signals (6).
            network = version >= 4 ? 0b11 : 0
            scopes = version >= 6 ? 0b11 : 0
        }
    }
}

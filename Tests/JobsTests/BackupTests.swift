import Glibc
import Jobs
import SystemPackage
import TestSupport
import Testing

@Suite("Copies of the database", .timeLimit(.minutes(15)), .onSQLite)
struct BackupTests {
    @Test func `A backup to the path of the database itself is refused`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: ["https://a.example/1.jpg"]))
            #expect(symlink("worker.db", folder.appending("other.db").string) == 0)
            #expect(link(path, folder.appending("second.db").string) == 0)
            let names = [
                "worker.db", "worker.db-wal", "worker.db-shm", "worker.db-journal", "worker.db.lock", "./worker.db",
            ]
            for name in names + ["other.db", "second.db"] {
                let error = await #expect(throws: JobsError.self) {
                    try await store.maintenance.backUp(to: "\(folder)/\(name)")
                }
                #expect(error?.code == .refused, "\(name)")
            }
            #expect(try await store.reports.backlog().queued == 1)
            try await store.close()
        }
    }

    @Test func `A backup onto a folder, a FIFO or a link to one is refused and leaves it as it was`() async throws {
        try await withTemporaryDirectory { folder in
            let store = try JobStore(path: folder.appending("worker.db").string)
            let place = folder.appending("copies").string
            #expect(mkdir(place, 0o755) == 0 && mkdir(place + "/folder", 0o755) == 0)
            #expect(mkfifo(place + "/fifo", 0o644) == 0)
            #expect(symlink("fifo", place + "/to-fifo") == 0 && symlink("folder", place + "/to-folder") == 0)
            let before = fileNames(in: place).sorted()
            for name in ["folder", "fifo", "to-fifo", "to-folder", "", "new/"] {
                let error = await #expect(throws: JobsError.self) {
                    try await store.maintenance.backUp(to: "\(place)/\(name)")
                }
                #expect(error?.code == .refused, "\(name): \(error?.message ?? "")")
            }
            #expect(fileNames(in: place).sorted() == before)
            var info = stat()
            #expect(lstat(place + "/fifo", &info) == 0 && info.st_mode & S_IFMT == S_IFIFO)
            #expect(lstat(place + "/to-fifo", &info) == 0 && info.st_mode & S_IFMT == S_IFLNK)
            // An older copy, under whatever name, is no hindrance.
            try await store.maintenance.backUp(to: place + "/copy.db")
            try await store.maintenance.backUp(to: place + "/copy.db")
            try await store.close()
        }
    }

    @Test func `Concurrent backups to one path make a whole copy and leave no other file`() async throws {
        try await withTemporaryDirectory { folder in
            let path = folder.appending("worker.db").string
            let store = try JobStore(path: path)
            _ = try await store.queue.enqueue(NewJob(urls: (0..<2_000).map { "https://a.example/\($0).jpg" }))
            #expect(chmod(path, 0o600) == 0)
            let place = folder.appending("copies")
            #expect(mkdir(place.string, 0o755) == 0)
            try await withThrowingTaskGroup { group in
                for _ in 0..<6 { group.addTask { try await store.maintenance.backUp(to: "\(place)/copy.db") } }
                try await group.waitForAll()
            }
            #expect(fileNames(in: place.string) == ["copy.db"])
            var info = stat()
            #expect(stat("\(place)/copy.db", &info) == 0 && info.st_mode & 0o777 == 0o600)
            let copy = try JobStore(path: "\(place)/copy.db")
            #expect(try await copy.reports.backlog().queued == 2_000)
            #expect(try await copy.maintenance.integrity().complaints == [])
            try await copy.close()
            try await store.close()
        }
    }

    @Test func `A backup removes the partial files of killed backups if they are old and unlocked`() async throws {
        try await withTemporaryDirectory { folder in
            let store = try JobStore(path: folder.appending("worker.db").string)
            let place = folder.appending("copies")
            #expect(mkdir(place.string, 0o755) == 0)
            let drafts = ["copy.db.part.7.aa", "copy.db.part.7.aa-journal", "copy.db.part.8.bb", "copy.db.part.9.cc"]
            let others = [
                "copy.db.part", "copy.db.part1", "copy.db.partial", "copy.db.part.7", "copy.db.part.7.aa.bb",
                "copy.db.part.7.aa-wal-x", "mine.db.part", "mine.db.part.7.aa",
            ]
            for name in drafts + others {
                let file = try FileDescriptor.open(
                    place.appending(name), .writeOnly, options: .create, permissions: .ownerReadWrite)
                try file.close()
                var times = [timespec(tv_sec: name.hasSuffix("bb") ? time(nil) : 1_000_000, tv_nsec: 0)]
                times.append(times[0])
                #expect(utimensat(AT_FDCWD, "\(place)/\(name)", times, 0) == 0)
            }
            let held = try FileDescriptor.open(place.appending("copy.db.part.9.cc"), .readWrite)
            #expect(flock(held.rawValue, LOCK_EX) == 0)
            try await store.maintenance.backUp(to: "\(place)/copy.db")
            let left = Set(others).union(["copy.db", "copy.db.part.8.bb", "copy.db.part.9.cc"])
            #expect(Set(fileNames(in: place.string)) == left)
            try held.close()
            try await store.close()
        }
    }
}

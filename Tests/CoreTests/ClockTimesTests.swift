import Core
import FoundationEssentials
import Testing

@Suite("Times of the two clocks", .timeLimit(.minutes(15)))
struct ClockTimesTests {
    private let noon = WallTime(milliseconds: 1_800_000_000_000)

    @Test func `Times are moved and compared by milliseconds`() {
        #expect((noon + 1_500).milliseconds == 1_800_000_001_500)
        #expect((noon - 1_500) - noon == -1_500)
        #expect(noon < noon + 1 && noon > noon - 1 && noon == noon + 0)
        #expect([noon + 1, noon - 1, noon].sorted() == [noon - 1, noon, noon + 1])
    }

    @Test(arguments: [Int64.min, .min + 1, -1, 0, 1, .max])
    func `Times saturate for every number`(_ number: Int64) {
        let time = SteadyTime(milliseconds: number)
        #expect(time + .max >= time && time - .min >= time)
        #expect(time - .max <= time && time + .min <= time)
        #expect(SteadyTime.max - SteadyTime.min == .max && SteadyTime.max + number <= .max)
        // Each difference has an absolute value.
        #expect(abs(SteadyTime.min - time) >= 0 && abs(time - SteadyTime.max) >= 0)
        #expect(abs(SteadyTime(clamping: number).milliseconds) <= 1 << 52)
    }

    @Test(arguments: [-86_400_000, 0, 315_360_000_000] as [Int64])
    func `A moment converts the times of one clock to those of the other`(_ jumps: Int64) {
        let now = Moment(wall: noon, jumps: jumps)
        #expect(now.steady.milliseconds == noon.milliseconds - jumps)
        #expect(now.steady(noon + 60_000) == now.steady + 60_000)
        #expect(now.wall(now.steady - 60_000) == noon - 60_000)
        #expect(now.wall(.max) >= noon && now.steady(.min) <= now.steady)
    }

    @Test func `The same number by two clocks is not the same time`() {
        #expect(AnyHashable(WallTime(milliseconds: 5)) != AnyHashable(SteadyTime(milliseconds: 5)))
    }

    @Test func `Times are numbers in JSON`() throws {
        let text = String(decoding: try JSONEncoder().encode([noon]), as: UTF8.self)
        #expect(text == "[1800000000000]" && "\(noon)" == "1800000000000")
        #expect(try JSONDecoder().decode([SteadyTime].self, from: Data("[7]".utf8)) == [SteadyTime(milliseconds: 7)])
    }
}

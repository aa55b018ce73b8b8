@main struct WorkerCommand { static func main() {} }

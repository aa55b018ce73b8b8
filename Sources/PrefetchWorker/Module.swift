enum PrefetchWorkerModule {}

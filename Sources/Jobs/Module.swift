enum JobsModule {}

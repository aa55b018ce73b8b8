enum DownloadModule {}

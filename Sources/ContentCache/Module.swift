enum ContentCacheModule {}
